"""The identity provider's operations."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import decode_object
from services.provider_sandbox.feed import get_newest_event, list_events
from services.provider_sandbox.fields import Fields, merged
from services.provider_sandbox.idempotency import get_operation
from services.provider_sandbox.identity import records
from services.provider_sandbox.identity.lists import CUSTOMERS
from services.provider_sandbox.identity.verdicts import (
    UNDECIDED,
    Kind,
    first_verdict,
    number_field,
    number_of,
)
from services.provider_sandbox.listing import list_all
from services.provider_sandbox.operations import (
    Body,
    NoQuery,
    Nothing,
    Operations,
    Read,
    Refusal,
    Write,
)

Reference = Annotated[str, Field(min_length=1, max_length=255)]
"""The caller's id of a customer. Several records may carry the same one."""


class CreateCustomer(Body):
    customer_id: Reference
    kind: Literal["business", "person"]
    business_customer_id: Reference | None = None
    fields: Fields

    @model_validator(mode="after")
    def _has_a_number(self) -> Self:
        if number_of(self.kind, self.fields) is None:
            raise ValueError(f"fields.{number_field(self.kind)} must hold nine digits")
        return self


class UpdateCustomer(Body):
    fields: Fields


async def create_customer(connection: Connection, _: str, body: CreateCustomer) -> object:
    number = number_of(body.kind, body.fields)
    assert number is not None
    record = await records.add(
        connection,
        customer_id=body.customer_id,
        kind=body.kind,
        business_customer_id=body.business_customer_id,
        fields=merged({}, body.fields),
        status=first_verdict(number),
    )
    return records.shape(record)


async def get_customer(connection: Connection, identity_id: str, _: NoQuery) -> object:
    return records.shape(await records.find(connection, identity_id))


async def update_customer(connection: Connection, identity_id: str, body: UpdateCustomer) -> object:
    record = await records.lock(connection, identity_id)
    if record["status"] == "canceled":
        raise Refusal(409, "customer_canceled", "A canceled customer is not changed any more.")
    kind: Kind = record["kind"]
    before = decode_object(record["fields"])
    after = merged(before, body.fields)
    number = number_of(kind, after)
    if number is None:
        raise Refusal(400, "invalid", f"fields.{number_field(kind)} must hold nine digits.")
    changed = number != number_of(kind, before)
    verdict = first_verdict(number)
    if changed and verdict == "denied":
        raise Refusal(422, "identity_refused", "The new number could not be verified.")
    await records.set_fields(connection, record, after)
    if changed and verdict in UNDECIDED and record["status"] == "approved":
        record = await records.set_status(connection, record, "pending_review")
    return records.shape(record)


async def cancel_customer(connection: Connection, identity_id: str, _: Nothing) -> object:
    record = await records.lock(connection, identity_id)
    return records.shape(await records.set_status(connection, record, "canceled"))


OPERATIONS: Operations = (
    Write("create_customer", "POST", "/customers", create_customer, CreateCustomer),
    Read("get_customer", "/customers/{id}", get_customer, NoQuery),
    Write("update_customer", "PATCH", "/customers/{id}", update_customer, UpdateCustomer),
    Write("cancel_customer", "POST", "/customers/{id}/cancel", cancel_customer, Nothing),
    list_all("list_customers", "/customers", CUSTOMERS),
    list_events("identity"),
    get_newest_event("identity"),
    get_operation("identity"),
)
