"""Deliveries of one subscription: those that are not over, and, by the attempt that ended them, those that are.

Callers have made sure that the subscription is the principal's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Date,
    FromClause,
    Integer,
    Row,
    ScalarSelect,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from libs.contracts.webhook_views import BreakerRole, DeliveryFilter, DeliveryStatus
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.models import AttemptRecord, DeliveryRecord
from services.webhook_dispatcher.repository.index_plans import BY_INDEX
from services.webhook_dispatcher.tables import (
    FAILED,
    HELD,
    PENDING,
    SUCCEEDED,
    attempt,
    delivery,
    endpoint,
    redelivery,
)

MOST_LISTED = 100_000
"""The newest deliveries that can be paged through. A subscription may have a hundred million."""
MOST_SORTED = 1000
"""Up to so many deliveries that a filter means are found by its own index, and sorted. In order of their ids they might
be found among all of the subscription, which may be millions.
"""
MOST_ATTEMPTS = 40
"""The newest attempts of a delivery that are shown: more than the 31 of the longest retry schedule that can be set. A
delivery may have any number, since its schedule begins anew each time that it was held and is due again.
"""
MOST_BODY_BYTES = 64 * 1024
"""Of the answers to the attempts of a delivery that are shown, the newest first: one key may read the delivery many
times at once, and each of 40 attempts has up to 16 KiB.
"""
MOST_DAYS = 400
"""Partitions are made for no older days."""

_IS_PENDING = delivery.c.state == PENDING
IS_FAILING = and_(_IS_PENDING, delivery.c.attempts_made > literal_column("0"))


def _open(rows: FromClause) -> Select[Any]:
    """Of these rows of `delivery`, what a delivery that is not over has."""
    breaker = case(
        (or_(rows.c.state != PENDING, endpoint.c.open_until.is_(None)), None),
        (rows.c.claim.is_(None), BreakerRole.WAITS.value),
        (endpoint.c.open_until <= func.statement_timestamp(), BreakerRole.PROBE.value),
    )
    next_attempt_at = case(
        (rows.c.state == PENDING, func.greatest(rows.c.due_at, endpoint.c.open_until))
    )
    return select(
        rows.c.id,
        rows.c.subscription_id,
        rows.c.event_day,
        rows.c.event_id,
        rows.c.event_type,
        rows.c.state.label("status"),
        rows.c.attempts_made,
        next_attempt_at.label("next_attempt_at"),
        breaker.label("circuit_breaker"),
        rows.c.created_at,
    ).select_from(rows.outerjoin(endpoint, endpoint.c.subscription_id == rows.c.subscription_id))


OPEN = _open(delivery)
"""Deliveries that are not over."""
OVER = select(
    attempt.c.delivery_id.label("id"),
    attempt.c.subscription_id,
    attempt.c.event_day,
    attempt.c.event_id,
    attempt.c.event_type,
    attempt.c.concluded.label("status"),
    attempt.c.number.label("attempts_made"),
    null().cast(INSTANT).label("next_attempt_at"),
    null().cast(Text).label("circuit_breaker"),
    attempt.c.delivery_created_at.label("created_at"),
).where(attempt.c.concluded.is_not(None))
"""Deliveries that are over."""
_OPEN = OPEN.where(delivery.c.subscription_id == bindparam("subscription_id"))
_OVER = OVER.where(attempt.c.subscription_id == bindparam("subscription_id"))
# Two parts, each of which has an index. The deliveries in flight are few, and read in the order of their index before
# they are sorted: in order of their ids they would be found among all of the subscription.
_WAITING = _OPEN.where(_IS_PENDING, delivery.c.claim.is_(None))
_IN_FLIGHT = _open(
    select(delivery)
    .where(
        delivery.c.subscription_id == bindparam("subscription_id"),
        _IS_PENDING,
        delivery.c.claim.is_not(None),
    )
    .order_by(delivery.c.lease_until)
    .cte("in_flight")
    .prefix_with("MATERIALIZED")
)
_HELD = _OPEN.where(delivery.c.state == HELD)
_FAILING = _OPEN.where(IS_FAILING)
PARTS: dict[DeliveryFilter | None, tuple[Select[Any], ...]] = {
    None: (_OPEN, _OVER),
    DeliveryFilter.PENDING: (_WAITING, _IN_FLIGHT),
    DeliveryFilter.HELD: (_HELD,),
    DeliveryFilter.SUCCEEDED: (_OVER.where(attempt.c.concluded == SUCCEEDED),),
    DeliveryFilter.FAILED: (_OVER.where(attempt.c.concluded == FAILED),),
    DeliveryFilter.FAILING: (_FAILING,),
}
"""The deliveries of a subscription that a filter means."""
_FIND = union_all(
    _OPEN.where(delivery.c.id == bindparam("id")),
    _OVER.where(attempt.c.delivery_id == bindparam("id")),
)


def _listing(*parts: Select[Any]) -> tuple[Select[int], Select[*tuple[Any, ...]]]:
    """How many there are in the parts, up to `most`, and a page of them: of each part only as many rows are read as
    the page may need.
    """
    some = (
        part.with_only_columns(part.selected_columns[0]).limit(bindparam("most")) for part in parts
    )
    counted = (
        select(union_all(*some).subquery("found")).limit(bindparam("most")).subquery("counted")
    )
    newest = (
        part.order_by(part.selected_columns[0].desc()).limit(bindparam("reach")) for part in parts
    )
    return select(func.count()).select_from(counted), _page(*newest)


def _page(*parts: Select[Any]) -> Select[*tuple[Any, ...]]:
    found = union_all(*parts).subquery("found")
    page = select(found).order_by(found.c.id.desc())
    return page.limit(bindparam("limit")).offset(bindparam("offset"))


_LISTINGS = {wanted: _listing(*parts) for wanted, parts in PARTS.items()}
# Twice as many: some may be added after they were counted.
_FEW = literal_column(str(2 * MOST_SORTED), Integer)
_PAGES_OF_FEW = {
    # In the order of the index on due deliveries: that on events has them, too, among those of all subscriptions.
    DeliveryFilter.PENDING: _page(_WAITING.order_by(delivery.c.due_at).limit(_FEW), _IN_FLIGHT),
    DeliveryFilter.HELD: _page(_HELD.limit(_FEW)),
    DeliveryFilter.FAILING: _page(_FAILING.limit(_FEW)),
}
# Each day is a partition, whose index has the attempts of a delivery in the order of their numbers.
_DAYS = func.unnest(bindparam("days", type_=ARRAY(Date))).table_valued("day").render_derived("days")
_OF_DAY = (
    select(
        attempt.c.number,
        attempt.c.attempted_at,
        attempt.c.duration_ms,
        attempt.c.response_status,
        attempt.c.error,
        attempt.c.response_body,
    )
    .where(attempt.c.day == _DAYS.c.day, attempt.c.delivery_id == bindparam("id"))
    .order_by(attempt.c.number.desc())
    .limit(MOST_ATTEMPTS)
    .lateral("of_day")
)
# PostgreSQL knows the length of a text without reading it.
_BODY = case(
    (
        func.sum(func.octet_length(_OF_DAY.c.response_body)).over(order_by=_OF_DAY.c.number.desc())
        <= literal_column(str(MOST_BODY_BYTES)),
        _OF_DAY.c.response_body,
    )
)
_ATTEMPTS = (
    select(
        _OF_DAY.c.attempted_at,
        _OF_DAY.c.duration_ms,
        _OF_DAY.c.response_status,
        _OF_DAY.c.error,
        _BODY,
    )
    .select_from(_DAYS.join(_OF_DAY, true()))
    .order_by(_OF_DAY.c.number.desc())
    .limit(MOST_ATTEMPTS)
)
# A set-based statement with two writes: read as SQL, it is one thought.
_ADD_AGAIN = text(
    """
    WITH added AS (
        INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, due_at, created_at)
        SELECT n.id, s.id, s.tenant, e.day, e.id, e.type, 'pending', clock_timestamp(), clock_timestamp()
        FROM unnest(CAST(:ids AS uuid[]), CAST(:days AS date[]), CAST(:event_ids AS uuid[])) AS n (id, day, event_id)
        JOIN event e ON e.day = n.day AND e.id = n.event_id
        JOIN subscription s ON s.id = :subscription_id
        RETURNING id, subscription_id, event_id, created_at
    ), noted AS (
        INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)
        SELECT subscription_id, event_id, id, created_at FROM added
    )
    SELECT count(*) FROM added
    """
)
# Of those that wait, the first is found by the index on due deliveries.
_OTHER = delivery.alias("other")
_PUT_FIRST = (
    update(delivery)
    .where(delivery.c.id == bindparam("delivery_id"))
    .values(
        due_at=func.least(
            delivery.c.due_at,
            select(func.min(_OTHER.c.due_at) - timedelta(milliseconds=1))
            .where(
                _OTHER.c.subscription_id == bindparam("of_subscription"),
                _OTHER.c.state == PENDING,
                _OTHER.c.claim.is_(None),
            )
            .scalar_subquery(),
        )
    )
)


def _count(*parts: ColumnElement[bool]) -> ScalarSelect[int]:
    """Up to `most`. Each part has an index that finds its rows."""
    found = union_all(
        *(
            select(delivery.c.id)
            .where(delivery.c.subscription_id == bindparam("subscription_id"), part)
            .limit(bindparam("most"))
            for part in parts
        )
    ).subquery()
    counted = select(found.c.id).limit(bindparam("most")).subquery()
    return select(func.count()).select_from(counted).scalar_subquery()


_COUNTS = select(
    _count(
        and_(_IS_PENDING, delivery.c.claim.is_(None)),
        and_(_IS_PENDING, delivery.c.claim.is_not(None)),
    ),
    _count(IS_FAILING),
)
_NOTE = insert(redelivery).values(created_at=func.clock_timestamp()).on_conflict_do_nothing()


async def find(
    connection: AsyncConnection, subscription_id: UUID, delivery_id: UUID
) -> DeliveryRecord | None:
    found = await connection.execute(_FIND, {"subscription_id": subscription_id, "id": delivery_id})
    row = found.first()
    return None if row is None else record_of(row)


async def page(
    connection: AsyncConnection,
    subscription_id: UUID,
    status: DeliveryFilter | None,
    *,
    limit: int,
    offset: int,
) -> tuple[list[DeliveryRecord], int]:
    """The newest first, and how many there are, counted up to `MOST_LISTED`. To be read in a snapshot, so that a
    delivery that ends meanwhile is listed once.
    """
    count, rows = _LISTINGS[status]
    of_subscription = {"subscription_id": subscription_id}
    await connection.execute(BY_INDEX)
    counted = await connection.execute(count, {**of_subscription, "most": MOST_LISTED})
    total = int(counted.scalar_one())
    limit = min(limit, total - offset)
    if limit <= 0:
        return [], total  # a page far beyond the end would read all that is before it
    values = {**of_subscription, "limit": limit, "offset": offset}
    few = _PAGES_OF_FEW.get(status) if status and total <= MOST_SORTED else None
    if few is not None:
        found = await connection.execute(few, values)
    else:
        found = await connection.execute(rows, {**values, "reach": limit + offset})
    return [record_of(row) for row in found], total


async def attempts(connection: AsyncConnection, delivery: DeliveryRecord) -> list[AttemptRecord]:
    """Those that are within the retention, in their order; the newest `MOST_ATTEMPTS` of them, without the answers that
    are beyond `MOST_BODY_BYTES`.
    """
    days = days_since(delivery.created_at.astimezone(UTC).date())
    rows = await connection.execute(_ATTEMPTS, {"days": days, "id": delivery.id})
    return [AttemptRecord(*row) for row in reversed(rows.all())]


def days_since(first: date) -> list[date]:
    """The days of attempts of what was made on a day, whose index begins with the day: each is looked up by itself.

    One more at either end, since clocks differ. None is older than the longest retention.
    """
    today = datetime.now(UTC).date()
    oldest = (today - first).days + 1
    return [today - timedelta(days=n) for n in range(-1, min(oldest, MOST_DAYS) + 1)]


async def add_again(
    connection: AsyncConnection,
    subscription_id: UUID,
    deliveries: Sequence[tuple[UUID, date, UUID]],
) -> int:
    """Add deliveries, due now, of events that the subscription had before: the id of each with the day and id of its
    event. Returns how many; an event that is no longer there gets none.
    """
    added = await connection.execute(
        _ADD_AGAIN,
        {
            "subscription_id": subscription_id,
            "ids": [delivery_id for delivery_id, _, _ in deliveries],
            "days": [day for _, day, _ in deliveries],
            "event_ids": [event_id for _, _, event_id in deliveries],
        },
    )
    return int(added.scalar_one())


async def put_first(connection: AsyncConnection, subscription_id: UUID, delivery_id: UUID) -> None:
    """Have a delivery of the caller's transaction attempted before all others of its subscription that wait."""
    await connection.execute(
        _PUT_FIRST, {"of_subscription": subscription_id, "delivery_id": delivery_id}
    )


async def count_waiting(
    connection: AsyncConnection, subscription_id: UUID, most: int
) -> tuple[int, int]:
    """How many are pending, and of how many of these an attempt has failed; each counted up to `most`."""
    values = {"subscription_id": subscription_id, "most": most}
    pending, failing = (await connection.execute(_COUNTS, values)).one()
    return pending, failing


async def note(connection: AsyncConnection, subscription_id: UUID, known: DeliveryRecord) -> None:
    """Note a delivery whose event gets another one, so that the result of either is found by the event."""
    await connection.execute(
        _NOTE,
        {
            "subscription_id": subscription_id,
            "event_id": known.event_id,
            "delivery_id": known.id,
        },
    )


def record_of(row: Row[*tuple[Any, ...]]) -> DeliveryRecord:
    values = row._asdict()
    role = values["circuit_breaker"]
    return DeliveryRecord(
        **{
            **values,
            "status": DeliveryStatus(values["status"]),
            "circuit_breaker": BreakerRole(role) if role is not None else None,
        }
    )
