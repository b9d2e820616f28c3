"""Search by id: each service looks up what it owns, and the gateway puts the answers together."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operation import GATEWAY, Operation


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
    REQUEST = "request"
    DIFFERENCE = "difference"
    SAGA = "saga"


class FindId(Command):
    q: f.FilterId


class FoundId(Model):
    """Something that the id names.

    Args:
        id: by which the operation that reads it finds it: of a person, its customer's.
        label: a few words about it, nothing sensitive.
    """

    service: str
    kind: Annotated[Kind, Field(strict=False)]
    id: str
    tenant: str | None = None
    customer_id: str | None = None
    label: str | None = None


class FoundIds(Model):
    found: list[FoundId]


def find_id_in(service: str) -> Operation[FindId, FoundIds]:
    """The row by which the gateway asks a service. What the service does not know is no error: nothing is found."""
    return Operation(
        name=f"{service}.operate_find_id",
        command=FindId,
        asked_by=(GATEWAY,),
        reply=FoundIds,
        summary="What an id names in this service, of any tenant",
    )
