"""Reports of core banking that payments could not apply: each is a difference until both sides of the wire agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from libs.contracts.reconciliation import Contradiction
from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.reconciliation.handlers.comparison import Scan
from services.reconciliation.handlers.wires import WireComparison, WireSides, judge
from services.reconciliation.models import Difference, Finding, Scanned
from services.reconciliation.ports import Payments
from services.reconciliation.repository import differences

STREAM = "contradictions"
SETTLED_AFTER = timedelta(minutes=1)
"""Ids are assigned before the commit: for this long, an id lower than those already read may still appear."""


class ContradictionComparison:
    """Keys are the ids of contradictions. Each is a difference once, even when the wire agrees again by then."""

    name = "contradictions"
    starts_anew = frozenset[str]()

    def __init__(self, database: Database, payments: Payments, wires: WireComparison) -> None:
        self._database = database
        self._payments = payments
        self._wires = wires

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"new": self._new}

    async def _new(self, after: str | None, deadline: float) -> Scanned:
        async with self._database.transaction() as connection:
            bookmark = await cursor.read(connection, STREAM)
        found = await self._payments.contradictions_after(
            bookmark if after is None else int(after), deadline
        )
        if not found:
            return Scanned(0, [], None)
        old = datetime.now(UTC) - SETTLED_AFTER
        settled = [one.contradiction_id for one in found if one.recorded_at < old]

        async def record(connection: AsyncConnection) -> None:
            opened = {str(one.contradiction_id): _difference(one) for one in found}
            await differences.open_unless_known(connection, self.name, opened)
            if settled and max(settled) > bookmark:
                await cursor.move(connection, STREAM, expected=bookmark, to=max(settled))

        keys = [str(one.contradiction_id) for one in found]
        return Scanned(len(found), keys, keys[-1], record)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        found = await self._payments.contradictions(keys, deadline)
        wires = [one.transaction_id for one in found.values()]
        sides = await self._wires.read(wires, deadline)
        return {
            key: _finding(one, sides[one.transaction_id]) if (one := found.get(key)) else []
            for key in keys
        }


def _finding(contradiction: Contradiction, sides: WireSides) -> Finding:
    finding = judge(contradiction.transaction_id, sides)
    if not isinstance(finding, list):
        return finding
    agree = not finding and sides.ours is not None and sides.theirs is not None
    return [] if agree else [_difference(contradiction)]


def _difference(contradiction: Contradiction) -> Difference:
    ids = {
        "contradiction_id": str(contradiction.contradiction_id),
        "transaction_id": contradiction.transaction_id,
    }
    if contradiction.feed_position is not None:
        ids["feed_position"] = str(contradiction.feed_position)
    return Difference(
        contradiction.kind,
        str(contradiction.contradiction_id),
        ids,
        None if contradiction.ours is None else {"says": contradiction.ours},
        None if contradiction.theirs is None else {"says": contradiction.theirs},
    )
