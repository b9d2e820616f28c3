"""Subscriptions, scoped by whose they are: a customer's, or the partner's own. Deleted ones are not there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.principal import Principal
from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher.models import SubscriptionRecord

_COLUMNS = """
    id, tenant, customer_id, event_type, callback_url, description, status, secret, previous_secret,
    previous_secret_expires_at, sequence, created_at, updated_at
"""
_BY_ID = f"""
    SELECT {_COLUMNS} FROM subscription
    WHERE id = :id AND tenant = :tenant AND customer_id IS NOT DISTINCT FROM :customer_id AND status <> 'deleted'
"""  # noqa: S608 - constants
_ADD = text(
    f"""
    INSERT INTO subscription (id, tenant, customer_id, event_type, callback_url, description, status, secret,
        created_at, updated_at)
    SELECT :id, :tenant, :customer_id, :event_type, :callback_url, :description, 'active', :secret, at, at
    FROM clock_timestamp() AS at
    RETURNING {_COLUMNS}
    """  # noqa: S608 - constants
)
_SAVE = text(
    f"""
    UPDATE subscription SET event_type = :event_type, callback_url = :callback_url, description = :description,
        status = :status, updated_at = greatest(updated_at, clock_timestamp())
    WHERE id = :id RETURNING {_COLUMNS}
    """  # noqa: S608 - constants
)
_ROTATE = text(
    f"""
    UPDATE subscription SET secret = :secret,
        previous_secret = CASE WHEN CAST(:overlap AS interval) > interval '0' THEN secret END,
        previous_secret_expires_at = CASE WHEN CAST(:overlap AS interval) > interval '0'
            THEN clock_timestamp() + CAST(:overlap AS interval) END,
        updated_at = greatest(updated_at, clock_timestamp())
    WHERE id = :id RETURNING {_COLUMNS}
    """  # noqa: S608 - constants
)


async def lock_subscriber(connection: AsyncConnection, principal: Principal) -> None:
    """Until the transaction ends nobody else adds a subscription for this subscriber."""
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtext('subscriber'), hashtext(:key))"),
        {"key": f"{principal.tenant}/{principal.customer_id or ''}"},
    )


async def count(connection: AsyncConnection, principal: Principal) -> int:
    counted = await connection.execute(
        text(f"SELECT count(*) FROM subscription WHERE {_owned_by(principal)}"),  # noqa: S608 - constants
        _owner(principal),
    )
    return int(counted.scalar_one())


async def add(
    connection: AsyncConnection,
    principal: Principal,
    subscription_id: UUID,
    *,
    event_type: str,
    callback_url: str,
    description: str,
    secret: bytes,
) -> SubscriptionRecord:
    added = await connection.execute(
        _ADD,
        {
            **_owner(principal),
            "id": subscription_id,
            "event_type": event_type,
            "callback_url": callback_url,
            "description": description,
            "secret": secret,
        },
    )
    record = _record(added.one())
    await _add_endpoint(connection, subscription_id)
    return record


async def find(
    connection: AsyncConnection,
    principal: Principal,
    subscription_id: UUID,
    *,
    for_change: bool = False,
) -> SubscriptionRecord | None:
    """The subscription, when it is the principal's.

    Args:
        for_change: lock its row until the transaction ends.
    """
    found = await connection.execute(
        text(_BY_ID + (" FOR NO KEY UPDATE" if for_change else "")),
        {**_owner(principal), "id": subscription_id},
    )
    row = found.first()
    return None if row is None else _record(row)


async def newest(connection: AsyncConnection, principal: Principal) -> list[SubscriptionRecord]:
    """All of them, the newest first."""
    found = await connection.execute(
        text(
            f"SELECT {_COLUMNS} FROM subscription WHERE {_owned_by(principal)}"  # noqa: S608 - constants
            " ORDER BY created_at DESC, id DESC"
        ),
        _owner(principal),
    )
    return [_record(row) for row in found]


async def save(connection: AsyncConnection, record: SubscriptionRecord) -> SubscriptionRecord:
    """Write what its owner may change. Its row is locked."""
    saved = await connection.execute(
        _SAVE,
        {
            "id": record.id,
            "event_type": record.event_type,
            "callback_url": record.callback_url,
            "description": record.description,
            "status": record.status.value,
        },
    )
    return _record(saved.one())


async def delete(connection: AsyncConnection, subscription_id: UUID) -> None:
    """Its row stays, without secrets: what was delivered refers to it."""
    await connection.execute(
        text(
            "UPDATE subscription SET status = 'deleted', secret = '', previous_secret = NULL,"
            " previous_secret_expires_at = NULL, updated_at = greatest(updated_at, clock_timestamp())"
            " WHERE id = :id"
        ),
        {"id": subscription_id},
    )


async def reset_endpoint(connection: AsyncConnection, subscription_id: UUID) -> None:
    """Take its endpoint for new: know nothing of how it has been doing, nor learn it from what is under way. Its row is
    locked.
    """
    values = {"id": subscription_id}
    await connection.execute(
        text("UPDATE subscription SET generation = generation + 1 WHERE id = :id"), values
    )
    await connection.execute(text("DELETE FROM endpoint WHERE subscription_id = :id"), values)
    await _add_endpoint(connection, subscription_id)


async def _add_endpoint(connection: AsyncConnection, subscription_id: UUID) -> None:
    await connection.execute(
        text("INSERT INTO endpoint (subscription_id) VALUES (:id)"), {"id": subscription_id}
    )


async def rotate_secret(
    connection: AsyncConnection, subscription_id: UUID, secret: bytes, overlap: timedelta
) -> SubscriptionRecord:
    """The secret becomes the previous one, in place of an earlier one, for as long as `overlap`."""
    rotated = await connection.execute(
        _ROTATE,
        {"id": subscription_id, "secret": secret, "overlap": overlap},
    )
    return _record(rotated.one())


async def next_sequence(connection: AsyncConnection, subscription_id: UUID) -> int:
    """Of the next event about the subscription itself. Its row is locked."""
    advanced = await connection.execute(
        text("UPDATE subscription SET sequence = sequence + 1 WHERE id = :id RETURNING sequence"),
        {"id": subscription_id},
    )
    return int(advanced.scalar_one())


def _owner(principal: Principal) -> dict[str, Any]:
    return {"tenant": principal.tenant, "customer_id": principal.customer_id}


def _owned_by(principal: Principal) -> str:
    # Each form by itself can use the index.
    customer = "customer_id = :customer_id" if principal.customer_id else _NO_CUSTOMER
    return f"tenant = :tenant AND {customer} AND status <> 'deleted'"


_NO_CUSTOMER = "customer_id IS NULL AND CAST(:customer_id AS text) IS NULL"


def _record(row: Row[Any]) -> SubscriptionRecord:
    values = row._asdict()
    return SubscriptionRecord(**{**values, "status": SubscriptionStatus(values["status"])})
