"""A comparison that a test plays by hand, and runs of the reconciler with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from libs.contracts.operating.differences import DifferenceState
from libs.persistence.engine import Database
from libs.persistence.leadership import leadership
from services.reconciliation.handlers.comparison import Comparison, Scan
from services.reconciliation.handlers.running import LEASE, Reconciler
from services.reconciliation.models import Difference, Finding, Scanned
from services.reconciliation.repository import runs
from services.reconciliation.repository.recorded import RecordedDifference
from services.reconciliation.repository.runs import Run
from tests.support.reconciling import recorded_differences

PAGE = 2


class Hand:
    """A comparison of keys, each of which says what is found about it."""

    def __init__(self, **findings: Finding) -> None:
        self.name = "hand"
        self.starts_anew = frozenset[str]()
        self.findings: dict[str, Finding] = dict(findings)
        self.scanned: list[str | None] = []
        self.looked: list[str] = []
        self.broken = False

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"all": self._scan}

    async def _scan(self, after: str | None, _: float) -> Scanned:
        self.scanned.append(after)
        if self.broken:
            raise ConnectionError("the other side is away")
        keys = sorted(key for key in self.findings if key > (after or ""))[:PAGE]
        more = len(keys) == PAGE
        suspected = [key for key in keys if self.findings[key] != []]
        return Scanned(len(keys), suspected, keys[-1] if more else None)

    async def look(self, keys: Sequence[str], _: float) -> Mapping[str, Finding]:
        self.looked += keys
        return {key: self.findings.get(key, []) for key in keys}


def differs(subject: str, **theirs: Any) -> list[Difference]:
    return [Difference("hand_differs", subject, {"id": subject}, {"here": 1}, theirs or None)]


class Steps:
    """Steps of one process, which leads for each of them."""

    def __init__(self, database: Database, reconciler: Reconciler) -> None:
        self._database = database
        self._reconciler = reconciler

    async def step(self) -> float:
        async with leadership(self._database, LEASE) as term:
            return await self._reconciler.step(term)


def reconciler(database: Database, *hands: Comparison, **changes: float) -> Steps:
    seconds = {
        "run_seconds": 3600.0,
        "run_limit_seconds": 3600.0,
        "grace_seconds": 0.0,
        "poll_seconds": 9.0,
    }
    return Steps(database, Reconciler(database, hands, **seconds | changes))


async def request(database: Database, cause: str = "test") -> UUID:
    async with database.transaction() as connection:
        return await runs.request_run(connection, cause)


async def completed(database: Database, hand: Comparison, **changes: float) -> Run:
    """A whole run from now on."""
    run_id = await request(database)
    steps = reconciler(database, hand, **changes)
    while True:
        await steps.step()
        async with database.transaction() as connection:
            run = await runs.find(connection, run_id)
        assert run is not None
        if run.finished_at is not None:
            return run


async def listed(database: Database, *, closed: bool = False) -> list[RecordedDifference]:
    return await recorded_differences(database, None if closed else DifferenceState.OPEN)
