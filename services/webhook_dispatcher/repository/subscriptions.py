"""Subscriptions, scoped by their owner: a customer, or the partner itself. Deleted ones are not found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Interval,
    Row,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    null,
    select,
    update,
)

from libs.contracts.principal import Principal
from libs.contracts.webhook_views import SubscriptionStatus
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.tables import ACTIVE, DELETED, endpoint
from services.webhook_dispatcher.tables import subscription as table

RECORD = (
    table.c.id,
    table.c.tenant,
    table.c.customer_id,
    table.c.event_type,
    table.c.callback_url,
    table.c.description,
    table.c.status,
    table.c.secret,
    table.c.previous_secret,
    table.c.previous_secret_expires_at,
    table.c.sequence,
    table.c.created_at,
    table.c.updated_at,
)
_OF_PARTNER = and_(
    table.c.tenant == bindparam("tenant"), table.c.customer_id.is_(None), table.c.status != DELETED
)
_OF_CUSTOMER = and_(
    table.c.tenant == bindparam("tenant"),
    table.c.customer_id == bindparam("customer_id"),
    table.c.status != DELETED,
)
_LOCK_SUBSCRIBER = select(
    func.pg_advisory_xact_lock(func.hashtext("subscriber"), func.hashtext(bindparam("key")))
)
_COUNT = select(func.count()).select_from(table)
_NEWEST = select(*RECORD).order_by(table.c.created_at.desc(), table.c.id.desc())
_COUNT_OF_PARTNER, _COUNT_OF_CUSTOMER = _COUNT.where(_OF_PARTNER), _COUNT.where(_OF_CUSTOMER)
_NEWEST_OF_PARTNER, _NEWEST_OF_CUSTOMER = _NEWEST.where(_OF_PARTNER), _NEWEST.where(_OF_CUSTOMER)
_FIND = select(*RECORD).where(
    table.c.id == bindparam("id"),
    table.c.tenant == bindparam("tenant"),
    table.c.customer_id.is_not_distinct_from(bindparam("customer_id", type_=Text)),
    table.c.status != DELETED,
)
_FIND_OF_ANY = select(*RECORD).where(table.c.id == bindparam("id"), table.c.status != DELETED)
_LOCK_OF_ANY = _FIND_OF_ANY.with_for_update(key_share=True)
_LOCK = _FIND.with_for_update(key_share=True)
_ADD = (
    insert(table)
    .values(
        status=SubscriptionStatus.ACTIVE.value,
        created_at=func.statement_timestamp(),
        updated_at=func.statement_timestamp(),
    )
    .returning(*RECORD)
)
_ADD_ENDPOINT = insert(endpoint)
_REMOVE_ENDPOINT = endpoint.delete().where(endpoint.c.subscription_id == bindparam("id"))
_CHANGE = update(table).where(table.c.id == bindparam("subscription_id"))
_TOUCH = _CHANGE.values(updated_at=func.greatest(table.c.updated_at, func.clock_timestamp()))
_SAVE = _TOUCH.values(
    event_type=bindparam("new_event_type"),
    callback_url=bindparam("new_callback_url"),
    description=bindparam("new_description"),
    status=bindparam("new_status"),
).returning(*RECORD)
# The URL, which may hold a secret, goes too.
_DELETE = _TOUCH.values(
    status="deleted",
    callback_url="",
    description="",
    secret=b"",
    previous_secret=null(),
    previous_secret_expires_at=null(),
)
_OVERLAP = bindparam("overlap", type_=Interval)
_ROTATE = _TOUCH.values(
    secret=bindparam("new_secret"),
    previous_secret=case((timedelta() < _OVERLAP, table.c.secret)),
    previous_secret_expires_at=case((timedelta() < _OVERLAP, func.clock_timestamp() + _OVERLAP)),
).returning(*RECORD)
_NEXT_SEQUENCE = _CHANGE.values(sequence=table.c.sequence + 1).returning(table.c.sequence)
_NEXT_GENERATION = _CHANGE.values(generation=table.c.generation + 1)
# Later than each earlier change, however the clocks differ: a change to active releases what was held before it alone.
_UNAVAILABLE_AT = func.greatest(
    table.c.updated_at + timedelta(microseconds=1), bindparam("now", type_=INSTANT)
)
_MAKE_UNAVAILABLE = (
    _CHANGE.where(
        table.c.status == ACTIVE, table.c.generation == bindparam("generation_of_endpoint")
    )
    .values(
        status=SubscriptionStatus.UNAVAILABLE.value,
        sequence=table.c.sequence + 1,
        updated_at=_UNAVAILABLE_AT,
        unavailable_at=_UNAVAILABLE_AT,
    )
    .returning(*RECORD)
)


async def lock_subscriber(connection: AsyncConnection, principal: Principal) -> None:
    """Until the transaction ends, no other one adds a subscription for this subscriber."""
    key = f"{principal.tenant}/{principal.customer_id or ''}"
    await connection.execute(_LOCK_SUBSCRIBER, {"key": key})


async def count(connection: AsyncConnection, principal: Principal) -> int:
    statement = _COUNT_OF_CUSTOMER if principal.customer_id else _COUNT_OF_PARTNER
    counted = await connection.execute(statement, _owner(principal))
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
    await connection.execute(_ADD_ENDPOINT, {"subscription_id": subscription_id})
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
        _LOCK if for_change else _FIND, {**_owner(principal), "id": subscription_id}
    )
    row = found.first()
    return None if row is None else _record(row)


async def find_of_any(
    connection: AsyncConnection, subscription_id: UUID, *, for_change: bool = False
) -> SubscriptionRecord | None:
    """For operators: as `find`, whose ever it is."""
    statement = _LOCK_OF_ANY if for_change else _FIND_OF_ANY
    row = (await connection.execute(statement, {"id": subscription_id})).first()
    return None if row is None else _record(row)


async def newest(connection: AsyncConnection, principal: Principal) -> list[SubscriptionRecord]:
    """All of them, the newest first."""
    statement = _NEWEST_OF_CUSTOMER if principal.customer_id else _NEWEST_OF_PARTNER
    found = await connection.execute(statement, _owner(principal))
    return [_record(row) for row in found]


async def save(connection: AsyncConnection, record: SubscriptionRecord) -> SubscriptionRecord:
    """Write what its owner may change. Its row is locked."""
    saved = await connection.execute(
        _SAVE,
        {
            "subscription_id": record.id,
            "new_event_type": record.event_type,
            "new_callback_url": record.callback_url,
            "new_description": record.description,
            "new_status": record.status.value,
        },
    )
    return _record(saved.one())


async def delete(connection: AsyncConnection, subscription_id: UUID) -> None:
    """Mark it as deleted. Its row stays, without secrets: attempts refer to it."""
    await connection.execute(_DELETE, {"subscription_id": subscription_id})


async def make_unavailable(
    connection: AsyncConnection, subscription_id: UUID, generation: int, now: datetime
) -> SubscriptionRecord | None:
    """Make an active subscription unavailable, and lock its row. The record's `sequence` is that of the event about it.

    None when it is not active, or when its endpoint was replaced since `generation`.
    """
    changed = await connection.execute(
        _MAKE_UNAVAILABLE,
        {"subscription_id": subscription_id, "generation_of_endpoint": generation, "now": now},
    )
    row = changed.first()
    return None if row is None else _record(row)


async def reset_endpoint(connection: AsyncConnection, subscription_id: UUID) -> None:
    """Replace the endpoint: forget its health, and ignore what attempts under way will say of it. The subscription's
    row is locked.
    """
    await connection.execute(_NEXT_GENERATION, {"subscription_id": subscription_id})
    await connection.execute(_REMOVE_ENDPOINT, {"id": subscription_id})
    await connection.execute(_ADD_ENDPOINT, {"subscription_id": subscription_id})


async def rotate_secret(
    connection: AsyncConnection, subscription_id: UUID, secret: bytes, overlap: timedelta
) -> SubscriptionRecord:
    """The secret becomes the previous one, in place of an earlier one, for as long as `overlap`."""
    rotated = await connection.execute(
        _ROTATE, {"subscription_id": subscription_id, "new_secret": secret, "overlap": overlap}
    )
    return _record(rotated.one())


async def next_sequence(connection: AsyncConnection, subscription_id: UUID) -> int:
    """The sequence of the next event about the subscription itself. Its row is locked."""
    advanced = await connection.execute(_NEXT_SEQUENCE, {"subscription_id": subscription_id})
    return int(advanced.scalar_one())


def _owner(principal: Principal) -> dict[str, Any]:
    return {"tenant": principal.tenant, "customer_id": principal.customer_id}


def _record(row: Row[*tuple[Any, ...]]) -> SubscriptionRecord:
    return record_of(row._mapping)


def record_of(values: Mapping[Any, Any]) -> SubscriptionRecord:
    """Of the columns `RECORD`."""
    return SubscriptionRecord(**{**values, "status": SubscriptionStatus(values["status"])})
