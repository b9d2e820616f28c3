"""The audit of a service: who did what, when, and with what outcome, in rows that are only ever added.

Each row holds its entry as a JSON text and a SHA-256 over the row before it, its day, its number and that text. So a
row that is changed, removed or put in between breaks the chain from there on, and `verify` names it. Rows cut off at
the end leave a whole chain behind: the last hash is logged as `audit_head`, to be compared with (`deploy/README.md`).

Entries never hold a sensitive value. Bodies appear as a keyed hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Date, bindparam, cast, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import encode
from libs.persistence.tables import audit as table

DDL = (
    """
    CREATE TABLE audit (
        day date NOT NULL,
        number bigint NOT NULL,
        entry text NOT NULL,
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        message_id text UNIQUE,
        finished_at timestamptz,
        PRIMARY KEY (day, number)
    )
    """,
    "CREATE INDEX audit_finished ON audit (finished_at) WHERE finished_at IS NOT NULL",
)

BEGINNING = bytes(32)
"""What stands in the first row for the hash of the row before it."""

_LOCK = select(
    func.pg_advisory_xact_lock(func.hashtext(func.current_schema()), func.hashtext("audit"))
)
_TODAY = select(cast(func.timezone("UTC", func.clock_timestamp()), Date))
_LAST = (
    select(table.c.day, table.c.number, table.c.hash)
    .order_by(table.c.day.desc(), table.c.number.desc())
    .limit(1)
)
_APPEND = insert(table)
_HASH = select(table.c.hash).where(
    table.c.day == bindparam("of_day"), table.c.number == bindparam("of_number")
)
_ROWS = select(table.c.day, table.c.number, table.c.entry, table.c.previous, table.c.hash).order_by(
    table.c.day, table.c.number
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was done.

    Args:
        actor: a subscription key, `operator:<name>`, or the service for what it did by itself; empty when not known.
        action: the operation, or what an operator did, such as `keys.revoke`.
        outcome: `ok`, or the code of the error.
        subject: ids and counts that say to what, none of them sensitive.
        body_digest: the keyed hash of the request's body.
        message_id, finished_at: of a command; see `audited_commands`.
    """

    actor: str
    action: str
    outcome: str
    subject: Mapping[str, str | int | None] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    tenant: str | None = None
    address: str | None = None
    request_id: str | None = None
    body_digest: str | None = None
    message_id: str | None = None
    finished_at: datetime | None = None

    def text(self) -> str:
        members = {
            "at": self.at.astimezone(UTC),
            "actor": self.actor,
            "action": self.action,
            "outcome": self.outcome,
            "tenant": self.tenant,
            "address": self.address,
            "request_id": self.request_id,
            "body_digest": self.body_digest,
            **self.subject,
        }
        return encode({name: v for name, v in members.items() if v is not None}).decode()


@dataclass(frozen=True, slots=True)
class Row:
    day: date
    number: int
    entry: str
    previous: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The last row: what a later look at the audit must still find."""

    day: date
    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.day}:{self.number}:{self.hash.hex()}"


class BrokenChain(Exception):
    """The message names the first row that is not as it was written, or is missing."""


def by_operator(name: str, action: str, **subject: str | int | None) -> Entry:
    return Entry(actor=f"operator:{name}", action=action, outcome="ok", subject=subject)


async def lock(connection: AsyncConnection) -> None:
    """Let no other transaction append until this one ends: taken before what is to be appended is read."""
    await connection.execute(_LOCK)


async def append(connection: AsyncConnection, entries: Sequence[Entry]) -> Head | None:
    """Append entries in the caller's transaction, which should end soon: others wait. The new head; None without any.

    In the transaction of what they tell, so that neither is there without the other.
    """
    if not entries:
        return None
    await lock(connection)
    today = (await connection.execute(_TODAY)).scalar_one()
    last = (await connection.execute(_LAST)).one_or_none()
    day, number, previous = last or (today, 0, BEGINNING)
    if day < today:  # a clock that was put back does not begin an earlier day
        day, number = today, 0
    rows: list[dict[str, Any]] = []
    for entry in entries:
        number += 1
        text = entry.text()
        hash_ = chained(previous, day, number, text)
        rows.append(
            {
                "day": day,
                "number": number,
                "entry": text,
                "previous": previous,
                "hash": hash_,
                "message_id": entry.message_id,
                "finished_at": entry.finished_at,
            }
        )
        previous = hash_
    await connection.execute(_APPEND, rows)
    return Head(day, number, previous)


async def read(connection: AsyncConnection, since: date | None = None) -> AsyncIterator[Row]:
    """The rows from this day on, in their order, without holding all of them in memory."""
    query = _ROWS if since is None else _ROWS.where(table.c.day >= since)
    async with connection.stream(query) as found:
        async for row in found:
            yield Row(row.day, row.number, row.entry, bytes(row.previous), bytes(row.hash))


async def verify(connection: AsyncConnection, since: date | None = None) -> Head | None:
    """Compute every hash anew; the head, None of an audit without rows.

    Args:
        since: with the rows of this day; the row before its first is then not looked at.

    Raises:
        BrokenChain: a row was changed, removed, or put in between.
    """
    head: Head | None = None
    async for row in read(connection, since):
        if head is None:
            expected = 1 if since is None else row.number
            if row.number != expected or (since is None and row.previous != BEGINNING):
                raise BrokenChain(f"{row.day} begins at {row.number}: what was before is missing")
        elif row.number != (head.number + 1 if row.day == head.day else 1):
            raise BrokenChain(f"rows are missing between {head.day}:{head.number} and {row.day}")
        elif row.previous != head.hash:
            raise BrokenChain(f"{row.day}:{row.number} does not follow the row before it")
        if row.hash != chained(row.previous, row.day, row.number, row.entry):
            raise BrokenChain(f"{row.day}:{row.number} was changed")
        head = Head(row.day, row.number, row.hash)
    return head


async def holds(connection: AsyncConnection, head: Head) -> bool:
    """Whether the row is there with this hash."""
    found = await connection.execute(_HASH, {"of_day": head.day, "of_number": head.number})
    row = found.one_or_none()
    return row is not None and bytes(row.hash) == head.hash


def chained(previous: bytes, day: date, number: int, entry: str) -> bytes:
    """The hash of a row, given that of the row before it."""
    return hashlib.sha256(previous + f"{day}:{number}:{entry}".encode()).digest()
