"""Databases that went back behind what providers hold: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated, Literal, get_args

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Write
from libs.contracts.operating.services import for_each_service, of_services
from libs.contracts.operation import Operation
from libs.contracts.principal import Role

Service = Literal["onboarding", "payments"]
SERVICES: tuple[Service, ...] = get_args(Service)


class ListRestores(Command):
    """Open cases."""


class ListRestoresOf(ListRestores):
    """Cases in which a database went back behind what providers hold, and which no operator has closed."""

    service: Service | None = None


class Restore(Model):
    """What providers hold and the service's database lacked, in one life of its server. `missing_records`: the first
    1,000 of `missing`.
    """

    service: str
    since: f.UtcDateTime
    """The start of the database server after which the records were found missing."""
    missing: int
    """How many records providers hold that the database lacked."""
    missing_records: list[str]
    """The ids of the first 1,000 of them."""


class Restores(Model):
    restores: list[Restore]
    """Open cases."""


class GatheredRestores(Restores):
    """The open cases of every service."""

    services: list[str]
    """The services that answered."""
    unreachable: list[str]


class DecideOnRestore(Write):
    """What was done, or found."""


class DecideOnRestoreOf(DecideOnRestore):
    """A service's database was restored: what was done is the `reason`."""

    service: Service


class CloseRestores(DecideOnRestore):
    """All open cases are closed: what was found is the `reason`."""

    missing: Annotated[int, Field(ge=0)] | None = None
    """How many missing records all open cases have, as they were seen: with another number by now none is closed."""


class CloseRestoresOf(CloseRestores):
    """All open cases of a service are closed: what was found is the `reason`."""

    service: Service


class RestoreDecided(Model):
    """What an operator's decision closed."""

    service: str
    closed: int
    """How many cases were closed by it."""


LIST_OF = for_each_service(
    SERVICES, "list_restores", command=ListRestores, reply=Restores, summary="Open cases"
)
DECLARE_OF = for_each_service(
    SERVICES,
    "declare_restore",
    command=DecideOnRestore,
    reply=RestoreDecided,
    changes=True,
    summary="Record that the database was restored",
)
CLOSE_OF = for_each_service(
    SERVICES,
    "close_restores",
    command=CloseRestores,
    reply=RestoreDecided,
    errors=(e.InvalidState,),
    changes=True,
    summary="Close the open cases",
)
OPERATIONS = of_services(LIST_OF, DECLARE_OF, CLOSE_OF)

LIST_RESTORES = Operation(
    name="gateway.list_restores",
    method=HTTPMethod.GET,
    path="/operator/restores",
    role=Role.VIEWER,
    command=ListRestoresOf,
    reply=GatheredRestores,
    message="Restores found",
    summary="List what providers hold and a service's database lacked",
    extension=True,
)
DECLARE_RESTORE = Operation(
    name="gateway.declare_restore",
    method=HTTPMethod.POST,
    path="/operator/restores/declare",
    role=Role.OPERATOR,
    command=DecideOnRestoreOf,
    reply=RestoreDecided,
    message="Restore declared",
    errors=(e.NotFound,),
    summary="Say that a service's database was restored: each first send asks the provider first",
    extension=True,
)
CLOSE_RESTORES = Operation(
    name="gateway.close_restores",
    method=HTTPMethod.POST,
    path="/operator/restores/close",
    role=Role.OPERATOR,
    command=CloseRestoresOf,
    reply=RestoreDecided,
    message="Restores closed",
    errors=(e.NotFound, e.InvalidState),
    summary="Say that what was missing has been seen to: first sends are sent at once again",
    extension=True,
)
GATEWAY_OPERATIONS = (LIST_RESTORES, DECLARE_RESTORE, CLOSE_RESTORES)
