"""The audit of a service: who did what, when, and with what outcome, in rows that are only ever added.

Each row holds its entry as a JSON text and a SHA-256 over the row before it, its day, its number and that text. A row
that does not follow the last one is refused by a trigger, so that the service's login can only go on where the audit
ends. A row that is changed, removed or put in between by other means breaks the chain
(`libs.contracts.operating.audit_chain`), and `bankside audit verify` names it. Rows cut off at the end leave a whole
chain behind: the last hash is logged as `audit_head`, to be compared with (`deploy/README.md`).

Entries never hold a sensitive value. Bodies without sensitive fields appear as a keyed hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Date, cast, func, insert, select

from libs.contracts.exact_json import encode
from libs.contracts.operating.audit_chain import BEGINNING, Head, chained
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.tables import audit as table
from libs.persistence.tables import audit_turn

_TURN = select(audit_turn.c.only_row, ENDED_WHEN_IDLE).with_for_update()
_TODAY = select(cast(func.timezone("UTC", func.clock_timestamp()), Date))
_LAST = (
    select(table.c.day, table.c.number, table.c.hash)
    .order_by(table.c.day.desc(), table.c.number.desc())
    .limit(1)
)
_APPEND = insert(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was done.

    Args:
        actor: a subscription key, or `operator:<name>`; empty when not known.
        action: the operation, or what an operator did, such as `keys.revoke`.
        outcome: `ok`, or the code of the error.
        subject: ids and counts that say to what, none of them sensitive.
        body_digest: the keyed hash of the request's body; None where the body has sensitive fields.
        key: the subscription key that an operator's request was signed with: the operator's own, or a console's.
        browser: the address of the operator's browser, as the console reports it.
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
    key: str | None = None
    browser: str | None = None

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
            "key": self.key,
            "browser": self.browser,
            **self.subject,
        }
        return encode({name: v for name, v in members.items() if v is not None}).decode()


async def append(connection: AsyncConnection, entries: Sequence[Entry]) -> None:
    """Append entries in the transaction of the changes that they record, so that neither is stored without the other.

    Call it last in the transaction: other transactions that append wait for its end.
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


async def _head(connection: AsyncConnection) -> Head | None:
    row = (await connection.execute(_LAST)).one_or_none()
    return Head(row.day, row.number, bytes(row.hash)) if row is not None else None
