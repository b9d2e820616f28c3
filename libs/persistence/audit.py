"""The audit of a service: who did what, when, and with what outcome, in rows that are only ever added.

Each row holds its entry as a JSON text and a SHA-256 over the row before it, its day, its number and that text. A row
that does not follow the last one is refused by a trigger, so that the service's login can only go on where the audit
ends. A row that is changed, removed or put in between by other means breaks the chain, and `verify` names it. Rows cut
off at the end leave a whole chain behind: the last hash is logged as `audit_head`, to be compared with
(`deploy/README.md`).

Entries never hold a sensitive value. Bodies appear as a keyed hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Date, bindparam, cast, func, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import encode
from libs.persistence.engine import Database
from libs.persistence.tables import audit as table
from libs.persistence.tables import audit_turn

DDL = (
    """
    CREATE TABLE audit (
        day date NOT NULL,
        number bigint NOT NULL,
        entry text NOT NULL,
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (day, number)
    )
    """,
    "CREATE TABLE audit_turn (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row))",
    "INSERT INTO audit_turn DEFAULT VALUES",
    """
    CREATE FUNCTION follow_the_audit() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        last record;
    BEGIN
        SELECT day, number, hash INTO last FROM audit ORDER BY day DESC, number DESC LIMIT 1;
        IF NEW.previous <> coalesce(last.hash, decode(repeat('00', 32), 'hex'))
            OR NEW.number <> (CASE WHEN NEW.day = last.day THEN last.number + 1 ELSE 1 END)
            OR NEW.day < last.day
            OR NEW.day IS DISTINCT FROM last.day AND NEW.day > (clock_timestamp() AT TIME ZONE 'UTC')::date
            OR NEW.hash <> sha256(NEW.previous || convert_to(NEW.day || ':' || NEW.number || ':' || NEW.entry, 'UTF8'))
        THEN
            RAISE integrity_constraint_violation USING MESSAGE = 'the row does not follow the last one of the audit';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER audit_follows BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION follow_the_audit()
    """,
)
"""After it, a migration revokes UPDATE and DELETE on `audit`, and INSERT and DELETE on `audit_turn`."""

BEGINNING = bytes(32)
"""What stands in the first row for the hash of the row before it."""
PAGE = 1000

_TURN = select(audit_turn.c.only_row).with_for_update()
_TODAY = select(cast(func.timezone("UTC", func.clock_timestamp()), Date))
_LAST = (
    select(table.c.day, table.c.number, table.c.hash)
    .order_by(table.c.day.desc(), table.c.number.desc())
    .limit(1)
)
_LAST_BEFORE = _LAST.where(table.c.day < bindparam("before"))
_APPEND = insert(table)
_HASH = select(table.c.hash).where(
    table.c.day == bindparam("of_day"), table.c.number == bindparam("of_number")
)
_PAGE = (
    select(table.c.day, table.c.number, table.c.entry, table.c.previous, table.c.hash)
    .where(
        tuple_(table.c.day, table.c.number)
        > tuple_(bindparam("after_day", type_=Date), bindparam("after_number"))
    )
    .order_by(table.c.day, table.c.number)
    .limit(PAGE)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was done.

    Args:
        actor: a subscription key, or `operator:<name>`; empty when not known.
        action: the operation, or what an operator did, such as `keys.revoke`.
        outcome: `ok`, or the code of the error.
        subject: ids and counts that say to what, none of them sensitive.
        body_digest: the keyed hash of the request's body.
    """

    actor: str
    action: str
    outcome: str
    subject: Mapping[str, str | int | float | None] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    tenant: str | None = None
    address: str | None = None
    request_id: str | None = None
    body_digest: str | None = None

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


def by_operator(name: str, action: str, **subject: str | float | None) -> Entry:
    return Entry(actor=f"operator:{name}", action=action, outcome="ok", subject=subject)


async def append(connection: AsyncConnection, entries: Sequence[Entry]) -> None:
    """Append entries in the caller's transaction, as the last it does: others who append wait for its end.

    In the transaction of the changes that they record, so that neither is stored without the other.
    """
    if not entries:
        return
    await connection.execute(_TURN)
    today = (await connection.execute(_TODAY)).scalar_one()
    last = await _head(connection)
    day, number, previous = (
        (last.day, last.number, last.hash) if last is not None else (today, 0, BEGINNING)
    )
    if day < today:  # a clock that was put back does not begin an earlier day
        day, number = today, 0
    rows: list[dict[str, Any]] = []
    for entry in entries:
        number += 1
        text = entry.text()
        hash_ = chained(previous, day, number, text)
        rows.append(
            {"day": day, "number": number, "entry": text, "previous": previous, "hash": hash_}
        )
        previous = hash_
    await connection.execute(_APPEND, rows)


async def head(database: Database) -> Head | None:
    async with database.transaction() as connection:
        return await _head(connection)


async def read(database: Database, since: date | None = None) -> AsyncIterator[Row]:
    """The rows from this day on, in their order: a page at a time, each in a transaction of its own."""
    after_day, after_number = since or date.min, 0
    while True:
        async with database.transaction() as connection:
            found = await connection.execute(
                _PAGE, {"after_day": after_day, "after_number": after_number}
            )
            page = [Row(r.day, r.number, r.entry, bytes(r.previous), bytes(r.hash)) for r in found]
        for row in page:
            yield row
        if len(page) < PAGE:
            return
        after_day, after_number = page[-1].day, page[-1].number


async def verify(database: Database, since: date | None = None) -> Head | None:
    """Compute every hash anew; the head, None of an audit without rows.

    Args:
        since: with the rows of this day. Earlier ones may have been archived.

    Raises:
        BrokenChain: a row was changed, removed, or put in between.
    """
    head: Head | None = None
    if since is not None:
        async with database.transaction() as connection:
            before = (await connection.execute(_LAST_BEFORE, {"before": since})).one_or_none()
        head = Head(before.day, before.number, bytes(before.hash)) if before else None
    is_first = since is None
    async for row in read(database, since):
        if row.number != (head.number + 1 if head is not None and row.day == head.day else 1):
            raise BrokenChain(f"rows are missing before {row.day}:{row.number}")
        if head is None and is_first and row.previous != BEGINNING:
            raise BrokenChain(f"{row.day} is not the first day: what was before is missing")
        if head is not None and row.previous != head.hash:
            raise BrokenChain(f"{row.day}:{row.number} does not follow the row before it")
        if row.hash != chained(row.previous, row.day, row.number, row.entry):
            raise BrokenChain(f"{row.day}:{row.number} was changed")
        head = Head(row.day, row.number, row.hash)
    return head


async def holds(database: Database, head: Head) -> bool:
    """Whether the row is there with this hash."""
    async with database.transaction() as connection:
        found = await connection.execute(_HASH, {"of_day": head.day, "of_number": head.number})
        row = found.one_or_none()
    return row is not None and bytes(row.hash) == head.hash


async def _head(connection: AsyncConnection) -> Head | None:
    row = (await connection.execute(_LAST)).one_or_none()
    return Head(row.day, row.number, bytes(row.hash)) if row is not None else None


def chained(previous: bytes, day: date, number: int, entry: str) -> bytes:
    """The hash of a row, given that of the row before it."""
    return hashlib.sha256(previous + f"{day}:{number}:{entry}".encode()).digest()
