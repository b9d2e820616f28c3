"""Core banking's customers: businesses and their persons."""

from __future__ import annotations

from typing import Annotated, Literal

import uuid_utils
from pydantic import Field

from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import decode_object, encode
from services.provider_sandbox.fields import Fields, merged
from services.provider_sandbox.operations import Body, NoQuery, Nothing, Refusal, not_found

_CREATE = """
    INSERT INTO core_customer (core_id, customer_id, kind, business_customer_id, fields)
    VALUES ($1, $2, $3, $4, $5) RETURNING *
"""
_FIND = "SELECT * FROM core_customer WHERE core_id = $1"
_SET_FIELDS = "UPDATE core_customer SET fields = $2 WHERE core_id = $1"
_CLOSE = "UPDATE core_customer SET status = 'closed' WHERE core_id = $1"
_LOCK = "SELECT * FROM core_customer WHERE core_id = $1 FOR NO KEY UPDATE"


class CreateCustomer(Body):
    customer_id: Annotated[str, Field(min_length=1, max_length=255)]
    kind: Literal["business", "person"]
    business_customer_id: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    fields: Fields


class UpdateCustomer(Body):
    fields: Fields


def shape(customer: Row) -> dict[str, object]:
    return {key: customer[key] for key in ("core_id", "customer_id", "kind", "status")}


async def lock_open(connection: Connection, core_id: str) -> Row:
    """The customer as it is until this transaction ends. Refuses one that is closed."""
    customer = await lock_any(connection, core_id)
    if customer["status"] == "closed":
        raise Refusal(409, "customer_closed", "The customer is closed.")
    return customer


async def create_customer(connection: Connection, _: str, body: CreateCustomer) -> object:
    customer = await connection.fetchrow(
        _CREATE,
        f"cus_{uuid_utils.uuid7().hex}",
        body.customer_id,
        body.kind,
        body.business_customer_id,
        encode(merged({}, body.fields)).decode(),
    )
    assert customer is not None
    return shape(customer)


async def get_customer(connection: Connection, core_id: str, _: NoQuery) -> object:
    customer = await connection.fetchrow(_FIND, core_id)
    if customer is None:
        raise not_found("customer")
    return shape(customer)


async def update_customer(connection: Connection, core_id: str, body: UpdateCustomer) -> object:
    customer = await lock_open(connection, core_id)
    fields = merged(decode_object(customer["fields"]), body.fields)
    await connection.execute(_SET_FIELDS, core_id, encode(fields).decode())
    return shape(customer)


async def close_customer(connection: Connection, core_id: str, _: Nothing) -> object:
    customer = await lock_any(connection, core_id)
    await connection.execute(_CLOSE, core_id)
    return {**shape(customer), "status": "closed"}


async def lock_any(connection: Connection, core_id: str) -> Row:
    """The customer as it is until this transaction ends, be it open or closed.

    Foreign keys do not wait for the lock: a transaction checks them while it holds the order of a list.
    """
    customer = await connection.fetchrow(_LOCK, core_id)
    if customer is None:
        raise not_found("customer")
    return customer
