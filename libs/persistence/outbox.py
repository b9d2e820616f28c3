"""Events as rows of the transaction that made them true. `relaying` publishes them after its commit.

Rows leave in order of `id`. Ids of one aggregate are in commit order, since its sequence is assigned under the lock
of its row.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Text, bindparam, func, insert, select
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA

from libs import tracing
from libs.contracts.events import Event
from libs.contracts.request_context import request_context
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import EVENTS_RECORDED
from libs.persistence.tables import outbox as table

_EVENTS = (
    func.unnest(
        bindparam("event_ids", type_=ARRAY(Text)),
        bindparam("types", type_=ARRAY(Text)),
        bindparam("tenants", type_=ARRAY(Text)),
        bindparam("customer_ids", type_=ARRAY(Text)),
        bindparam("resource_ids", type_=ARRAY(Text)),
        bindparam("sequences", type_=ARRAY(BigInteger)),
        bindparam("bodies", type_=ARRAY(BYTEA)),
        bindparam("request_ids", type_=ARRAY(Text)),
        bindparam("traces", type_=ARRAY(Text)),
    )
    .table_valued(
        "event_id",
        "type",
        "tenant",
        "customer_id",
        "resource_id",
        "sequence",
        "body",
        "request_id",
        "trace_context",
        name="event",
    )
    .render_derived()
)
_RECORD = insert(table).from_select([column.name for column in _EVENTS.c], select(*_EVENTS.c))


async def record(connection: AsyncConnection, *events: Event) -> None:
    """Record the events, in their order, in the caller's transaction, whose commit wakes the relay of this process.

    An event without a request id or a trace gets those that this task works for.
    """
    if not events:
        return
    current, trace = request_context.get(), tracing.current()
    request_id = current.request_id if current is not None else None
    connection.info[EVENTS_RECORDED] = True
    await connection.execute(
        _RECORD,
        {
            "event_ids": [event.event_id for event in events],
            "types": [event.type for event in events],
            "tenants": [event.tenant for event in events],
            "customer_ids": [event.customer_id for event in events],
            "resource_ids": [event.resource_id for event in events],
            "sequences": [event.sequence for event in events],
            "bodies": [event.body for event in events],
            "request_ids": [event.request_id or request_id for event in events],
            "traces": [event.trace or trace for event in events],
        },
    )
