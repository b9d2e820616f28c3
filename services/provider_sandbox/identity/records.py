"""The identity provider's records. Every status a record ever has is reported in the feed, the first included."""

from __future__ import annotations

import uuid_utils

from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import encode
from services.provider_sandbox.feed import publish
from services.provider_sandbox.fields import Fields
from services.provider_sandbox.identity.verdicts import Kind, Status, issues_of
from services.provider_sandbox.operations import not_found

_ADD = """
    INSERT INTO identity_record
        (identity_id, customer_id, business_customer_id, kind, fields, status)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING *
"""
_FIND = "SELECT * FROM identity_record WHERE identity_id = $1"
_LOCK = "SELECT * FROM identity_record WHERE identity_id = $1 FOR UPDATE"
_SET_FIELDS = "UPDATE identity_record SET fields = $2 WHERE identity_id = $1"
_SET_STATUS = """
    UPDATE identity_record SET status = $2, version = version + 1
    WHERE identity_id = $1 RETURNING *
"""


def shape(record: Row) -> dict[str, object]:
    """The record as the API shows it."""
    return {
        "identity_id": record["identity_id"],
        "customer_id": record["customer_id"],
        "kind": record["kind"],
        "status": record["status"],
        "version": record["version"],
        "issues": issues_of(record["status"]),
    }


async def add(
    connection: Connection,
    *,
    customer_id: str,
    kind: Kind,
    business_customer_id: str | None,
    fields: Fields,
    status: Status,
) -> Row:
    record = await connection.fetchrow(
        _ADD,
        f"idn_{uuid_utils.uuid7().hex}",
        customer_id,
        business_customer_id,
        kind,
        encode(fields).decode(),
        status,
    )
    assert record is not None
    await _report(connection, record)
    return record


async def find(connection: Connection, identity_id: str) -> Row:
    record = await connection.fetchrow(_FIND, identity_id)
    if record is None:
        raise not_found("identity")
    return record


async def lock(connection: Connection, identity_id: str) -> Row:
    """The record as it is until this transaction ends."""
    record = await connection.fetchrow(_LOCK, identity_id)
    if record is None:
        raise not_found("identity")
    return record


async def set_fields(connection: Connection, record: Row, fields: Fields) -> None:
    await connection.execute(
        _SET_FIELDS,
        record["identity_id"],
        encode(fields).decode(),
    )


async def set_status(connection: Connection, record: Row, status: Status) -> Row:
    """Move a locked record; the same status again changes and reports nothing."""
    if record["status"] == status:
        return record
    moved = await connection.fetchrow(
        _SET_STATUS,
        record["identity_id"],
        status,
    )
    assert moved is not None
    await _report(connection, moved)
    return moved


async def _report(connection: Connection, record: Row) -> None:
    content = {**shape(record), "business_customer_id": record["business_customer_id"]}
    await publish(connection, "identity", "customer.status_changed", content)
