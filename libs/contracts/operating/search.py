"""Search by id: each service looks up what it owns, and the gateway puts the answers together."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPMethod
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.services import for_each_service, of_gateway, of_services
from libs.contracts.operation import GATEWAY, Operation
from libs.contracts.principal import Role


class Kind(StrEnum):
    """What an id names."""

    WIRE = "wire"
    CUSTOMER = "customer"
    PERSON = "person"
    ACCOUNT = "account"
    EXTERNAL_ACCOUNT = "external_account"
    COMMAND = "command"
    EVENT = "event"
    DELIVERY = "delivery"
    SUBSCRIPTION = "subscription"
    SUBSCRIPTION_KEY = "subscription_key"
    DIFFERENCE = "difference"
    SAGA = "saga"


class FindId(Command):
    q: f.FilterId
    """The id, whole."""


class FoundId(Model):
    """Something that the id names.

    Args:
        id: by which the operation that reads it finds it: of a person, its customer's.
        label: a few words about it, nothing sensitive.
        request_id: of a command, its request; null of others, and where a service of the release before answered.
        subscription_id: of a delivery, its subscription; null of others, and where a service of the release before
            answered.
    """

    service: str
    kind: Annotated[Kind, Field(strict=False)]
    """What the id names."""
    id: str
    tenant: str | None = None
    """The tenant of the partner that it belongs to; null where it belongs to none."""
    customer_id: str | None = None
    """The customer that it belongs to; null where it belongs to none."""
    label: str | None = None
    request_id: str | None = None
    subscription_id: str | None = None


class FoundIds(Model):
    found: list[FoundId]
    """What the id names."""


class Search(Command):
    """An id of any kind: of a wire, a customer or a part of one, an account, a command, an event and so on."""

    q: f.FilterId
    """The id, whole."""


class SearchResult(FoundIds):
    """What services in `unreachable` have is missing."""

    unreachable: list[str]


FIND_ID_OF = for_each_service(
    (GATEWAY, "onboarding", "payments", "webhook_dispatcher", "reconciliation"),
    "find_id",
    command=FindId,
    reply=FoundIds,
    summary="What an id names in this service, of any tenant",
)
"""A service that knows nothing of the id answers that nothing is found."""

SEARCH = Operation(
    name=f"{GATEWAY}.search",
    method=HTTPMethod.GET,
    path="/operator/search",
    role=Role.VIEWER,
    command=Search,
    reply=SearchResult,
    message="Search done",
    summary="Find what an id names, in all services",
)

OPERATIONS = of_services(FIND_ID_OF)
GATEWAY_OPERATIONS = (SEARCH, *of_gateway(FIND_ID_OF))
