"""What the shared tables have of one request: its commands, and its events that are not published yet.

A caller chooses the ids of its requests and may give all of them the same one, so every look is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Table, Text, bindparam, exists, false, func, select

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE, inbox, outbox, outbox_unroutable

MOST_COMMANDS = 20
LOOKED_AT = 1_000
"""The most commands with one request id that are looked at; the latest of these are shown. Where there are more, any of
them are looked at.
"""
MOST_WAITING = 50
WAITING_LOOKED_AT = 10_000
"""Events that wait to be published, the latest: the outbox has no index by request, since it is nearly always empty."""

_REQUEST = bindparam("request_id", type_=Text)
_looked_at = (
    select(
        inbox.c.command_id,
        inbox.c.operation,
        inbox.c.message_id,
        inbox.c.principal,
        inbox.c.accepted_at,
        inbox.c.attempts,
        inbox.c.last_error,
        inbox.c.due_at,
        func.coalesce(inbox.c.lease_until > func.clock_timestamp(), false()).label("is_driven"),
        inbox.c.parked_at,
        inbox.c.parked_because,
        inbox.c.finished_at,
        inbox.c.forgotten,
        inbox.c.abandoned_by,
        inbox.c.abandoned_because,
        inbox.c.reply,
    )
    .where(inbox.c.request_id == _REQUEST)
    .limit(LOOKED_AT)
    .subquery("looked_at")
)
_COMMANDS = (
    select(_looked_at)
    .order_by(_looked_at.c.accepted_at.desc(), _looked_at.c.command_id)
    .limit(MOST_COMMANDS + 1)
)

_COMMAND = select(inbox.c.operation, inbox.c.request_id).where(
    inbox.c.command_id == bindparam("command_id", type_=UUID_TYPE)
)


def _waiting(table: Table) -> Select[Any]:
    newest = (
        select(
            table.c.event_id,
            table.c.type,
            table.c.tenant,
            table.c.customer_id,
            table.c.resource_id,
            table.c.recorded_at,
            table.c.request_id,
        )
        .order_by(table.c.id.desc())
        .limit(WAITING_LOOKED_AT)
        .subquery("newest")
    )
    return (
        select(*(column for column in newest.c if column.name != "request_id"))
        .where(newest.c.request_id == _REQUEST)
        .limit(MOST_WAITING + 1)
    )


def _has_more(table: Table) -> Select[Any]:
    """Whether more events wait than are looked at."""
    return select(exists(select(table.c.id).offset(WAITING_LOOKED_AT).limit(1)))


_HAS_MORE = tuple(map(_has_more, (outbox, outbox_unroutable)))
_WAITING = {False: _waiting(outbox), True: _waiting(outbox_unroutable)}


@dataclass(frozen=True, slots=True)
class RequestedCommand:
    """A command of the request, final or not. `principal` and `reply` encoded."""

    command_id: UUID
    operation: str
    message_id: str
    principal: bytes
    accepted_at: datetime
    attempts: int
    last_error: str | None
    due_at: datetime
    is_driven: bool
    parked_at: datetime | None
    parked_because: str | None
    finished_at: datetime | None
    forgotten: bool
    abandoned_by: str | None
    abandoned_because: str | None
    reply: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An event that the relay has not published, or that no queue takes."""

    is_unroutable: bool
    event_id: str
    type: str
    tenant: str
    customer_id: str
    resource_id: str
    recorded_at: datetime


async def commands_of(
    connection: AsyncConnection, request_id: str
) -> tuple[list[RequestedCommand], bool]:
    """The latest commands of the request, the oldest of them first, and whether there are more."""
    rows = (await connection.execute(_COMMANDS, {"request_id": request_id})).all()
    found = [RequestedCommand(*row) for row in rows[:MOST_COMMANDS]]
    return found[::-1], len(rows) > MOST_COMMANDS


async def find_command(connection: AsyncConnection, command_id: UUID) -> tuple[str, str] | None:
    """Operation and request of a command, final or not; None when it is not known."""
    row = (await connection.execute(_COMMAND, {"command_id": command_id})).first()
    return None if row is None else (row.operation, row.request_id)


async def waiting_events_of(
    connection: AsyncConnection, request_id: str
) -> tuple[list[WaitingEvent], bool]:
    """Events of the request among the latest that wait, and whether there may be more."""
    found = [
        WaitingEvent(is_unroutable, *row)
        for is_unroutable, statement in _WAITING.items()
        for row in await connection.execute(statement, {"request_id": request_id})
    ]
    is_cut = len(found) > MOST_WAITING
    for statement in _HAS_MORE:
        is_cut = is_cut or bool((await connection.execute(statement)).scalar_one())
    return found[:MOST_WAITING], is_cut
