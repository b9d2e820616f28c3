"""Sealing anew what is stored, in bounded steps: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from libs.contracts import errors as e
from libs.contracts.model import Model
from libs.contracts.operating.pages import Write
from libs.contracts.operating.services import for_each_service, of_gateway, of_services
from libs.contracts.operation import Operation
from libs.contracts.principal import Role

Service = Literal["gateway", "onboarding", "webhook_dispatcher"]
SERVICES: tuple[Service, ...] = get_args(Service)
"""Those that store sealed values."""


class Reseal(Write):
    """One step.

    Args:
        after: the `next` of the step before; without it, the walk begins. A walk goes over every column once.
    """

    after: Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None = None


class ResealService(Reseal):
    """Seal anew what a service stores under keys that are no longer the first of their ring, one step of the walk."""

    service: Service


class KeyUse(Model):
    """How much a key is needed for."""

    ring: str
    """The ring that the key belongs to."""
    key_id: str
    """The key's id in its ring."""
    values: Annotated[int, Field(ge=0)]
    """How many values of the rows of this step need the key."""


class ResealStep(Model):
    """What one step did.

    Args:
        part: the column, or the digests, that was walked over.
        rows: how many rows were sealed anew.
        unopened: values that no key of their ring opens.
        passed_over: rows that were locked: another walk seals them.
        keys: of the rows that were walked over.
        rings: the ids of each ring's keys, the one that seals first.
        next: the `after` of the next step; null when the walk is over.
    """

    part: str | None
    rows: int
    unopened: int
    passed_over: int
    keys: list[KeyUse]
    rings: dict[str, list[str]]
    next: str | None


RESEAL_OF = for_each_service(
    SERVICES,
    "reseal",
    command=Reseal,
    reply=ResealStep,
    changes=True,
    errors=(e.InvalidState,),
    summary="Seal some of what is stored with the first keys of the rings",
)
OPERATIONS = of_services(RESEAL_OF)

RESEAL = Operation(
    name="gateway.reseal_service",
    method=HTTPMethod.POST,
    path="/operator/keys/reseal/{service}",
    role=Role.ADMIN,
    command=ResealService,
    reply=ResealStep,
    message="Step done",
    errors=(e.NotFound, e.InvalidState),
    summary="Seal anew what a service has stored, one step at a time",
    extension=True,
)
GATEWAY_OPERATIONS = (RESEAL, *of_gateway(RESEAL_OF))
