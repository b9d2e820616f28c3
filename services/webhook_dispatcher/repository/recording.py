"""Recording events, each once, with a delivery for every subscription that it matches.

Positions are in commit order: the row of `event_position` is locked until the transaction ends. Only the audit's turn
is waited for after it, in the transaction of an operator; other rows that are locked after it are new. A transaction
that changes a subscription's status, or which events it gets, takes the lock as well: no event is then being recorded
by the subscription as it was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import select, text

from libs import tracing
from libs.contracts.events import Event
from libs.contracts.request_context import request_context
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from services.webhook_dispatcher.repository.events import parse_event_id
from services.webhook_dispatcher.tables import event_position

_LOCK = select(event_position.c.last, ENDED_WHEN_IDLE).with_for_update()
# One statement for batches from the broker and for single events of commands, whose transactions are SQLAlchemy's.
# Customers' subscriptions and partners' are looked up apart, so that each lookup has its part of the index. A partner
# gets no events about its customers' subscriptions (see `repository/events.py`). The ids of deliveries are UUIDv7
# (RFC 9562): milliseconds, version and variant over random bits; `uuidv7()` comes with PostgreSQL 18.
_RECORD = text(
    """
    WITH fresh AS (
        SELECT a.*, row_number() OVER (ORDER BY a.place) AS n
        FROM unnest(CAST(:days AS date[]), CAST(:ids AS uuid[]), CAST(:tenants AS text[]),
            CAST(:customers AS text[]), CAST(:types AS text[]), CAST(:resources AS text[]),
            CAST(:sequences AS bigint[]), CAST(:bodies AS bytea[]), CAST(:request_ids AS text[]),
            CAST(:traces AS text[])) WITH ORDINALITY
            AS a (day, id, tenant, customer_id, type, resource_id, sequence, body, request_id, trace_context, place)
        WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.day = a.day AND e.id = a.id)
    ), stored AS (
        INSERT INTO event (day, id, position, tenant, customer_id, type, resource_id, sequence, body, recorded_at,
            request_id, trace_context)
        SELECT day, id, CAST(:last AS bigint) + n, tenant, customer_id, type, resource_id, sequence, body,
            COALESCE(CAST(:at AS timestamptz), clock_timestamp()), request_id, trace_context
        FROM fresh
        ON CONFLICT DO NOTHING
        RETURNING day, id, position, tenant, customer_id, type
    ), moved AS (
        UPDATE event_position SET last = (SELECT max(position) FROM stored) WHERE EXISTS (SELECT 1 FROM stored)
    ), added AS (
        INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, held_at, due_at,
            created_at)
        SELECT
            CAST(encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)) FROM 3)
                FROM 1 FOR 6), 52, 1), 53, 1), 'hex') AS uuid),
            s.id, e.tenant, e.day, e.id, e.type,
            CASE s.status WHEN 'active' THEN 'pending' ELSE 'held' END,
            CASE s.status WHEN 'active' THEN NULL ELSE clock_timestamp() END,
            COALESCE(CAST(:at AS timestamptz), clock_timestamp()),
            COALESCE(CAST(:at AS timestamptz), clock_timestamp())
        FROM stored e CROSS JOIN LATERAL (
            SELECT id, status, event_type FROM subscription
            WHERE tenant = e.tenant AND customer_id = e.customer_id AND status <> 'deleted'
            UNION ALL
            SELECT id, status, event_type FROM subscription
            WHERE tenant = e.tenant AND customer_id IS NULL AND status <> 'deleted'
                AND (e.customer_id IS NULL OR split_part(e.type, '.', 1) <> 'webhook_subscription')
        ) AS s
        WHERE CASE
            WHEN CAST(:only_for AS uuid) IS NULL THEN s.event_type IN (e.type, split_part(e.type, '.', 1), '*')
            ELSE s.id = CAST(:only_for AS uuid)
        END
        ORDER BY e.position
        RETURNING id, subscription_id, state
    )
    SELECT (SELECT count(*) FROM stored) AS events, (SELECT count(*) FROM added) AS deliveries,
        (SELECT id FROM added LIMIT 1) AS one,
        (SELECT array_agg(DISTINCT subscription_id) FROM added WHERE state = 'pending') AS due
    """
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event with the day and the UUID of its id."""

    day: date
    id: UUID
    event: Event


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was new.

    Args:
        one: one of the deliveries.
        due: the subscriptions that have deliveries due now.
    """

    events: int
    deliveries: int
    one: UUID | None
    due: tuple[UUID, ...]


def arrival_of(event: Event) -> Arrival | None:
    """None when the id is not `evt_` and a UUIDv7."""
    parsed = parse_event_id(event.event_id)
    return None if parsed is None else Arrival(*parsed, event)


async def lock_positions(connection: AsyncConnection) -> int:
    """Let no other transaction record events until this one ends. Returns the position of the last event.

    Waits for transactions that are recording events: later statements see their deliveries.
    """
    return int((await connection.execute(_LOCK)).scalar_one())


async def record(
    connection: AsyncConnection, event: Event, *, only_for: UUID | None = None
) -> UUID | None:
    """Record an event of this service, caused by what this task works for, in the caller's transaction.

    Args:
        only_for: the only subscription to which it is delivered, even if that subscribes to other types.

    Returns:
        The id of the delivery, if there is one and `only_for` is given.
    """
    current = request_context.get()
    request_id = current.request_id if current is not None else None
    arrival = arrival_of(replace(event, request_id=request_id, trace=tracing.current()))
    assert arrival is not None, "ids of our own events are evt_<uuidv7>"
    recorded = await record_batch(connection, [arrival], None, only_for=only_for)
    return recorded.one if only_for is not None else None


async def record_batch(
    connection: AsyncConnection,
    arrivals: Sequence[Arrival],
    at: datetime | None,
    *,
    only_for: UUID | None = None,
) -> Recorded:
    """Record those of the events that are new, in their order. The partitions of their days exist.

    Args:
        at: from when on they are due; None: now, by the database's clock.
    """
    unique = list({arrival.id: arrival for arrival in arrivals}.values())
    events = [arrival.event for arrival in unique]
    last = await lock_positions(connection)
    recorded = await connection.execute(
        _RECORD,
        {
            "last": last,
            "at": at,
            "only_for": only_for,
            "days": [arrival.day for arrival in unique],
            "ids": [arrival.id for arrival in unique],
            "tenants": [event.tenant for event in events],
            "customers": [event.customer_id or None for event in events],
            "types": [event.type for event in events],
            "resources": [event.resource_id for event in events],
            "sequences": [event.sequence for event in events],
            "bodies": [event.body for event in events],
            "request_ids": [event.request_id for event in events],
            "traces": [event.trace for event in events],
        },
    )
    row = recorded.one()
    return Recorded(row.events, row.deliveries, row.one, tuple(row.due or ()))
