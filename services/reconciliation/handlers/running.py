"""A run: scans of every comparison, then a second look at what they suspect. After a crash it goes on where it was.

requested ──begin──▶ scans, page by page ──▶ second looks, once the grace has passed ──▶ complete
                         └── failures are retried with backoff, until the run is given up ──▶ gave_up

Long scans and looks take turns. What a run that was given up has not scanned is scanned by the next scheduled one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

import structlog

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.leadership import ELECTION_SECONDS, LeadershipLost, Term, fence, leadership
from libs.runtime.crash import crash_point
from services.reconciliation.handlers.backoff import RETRIES, ComparisonBackoff
from services.reconciliation.handlers.comparison import LOOK_AT_ONCE, Comparison, Scan
from services.reconciliation.handlers.turns import Turns
from services.reconciliation.metrics import FAILURES, LONGEST_GAP_SECONDS, RUNS
from services.reconciliation.models import EVIDENCE_GONE, IN_FLIGHT, Difference, Finding
from services.reconciliation.repository import differences, runs, suspects
from services.reconciliation.repository.runs import Outcome, Run, ScanPosition
from services.reconciliation.repository.suspects import Suspects

LEASE = "reconciliation"
STEP_SECONDS = 60.0
"""The longest one page or one batch of looks may take."""
LARGEST_LOOKS = 3
"""Looks after which a suspect counts as in flight when each look has found other differences, unless these drift."""
RUN_DAYS = 90
"""Retention of runs, which operators list."""
CLOSED_DAYS = 90
"""Retention of closed differences, which hold names and addresses; 90 days cover the close of a quarter. An explanation
of a difference that is still found is not deleted: it keeps the difference from being opened again.
"""
PURGE_SECONDS = 30.0
"""For which the end of a run deletes what is older. The next end goes on with what is left."""


@dataclass(frozen=True, slots=True)
class _NextPage:
    """The page that is scanned next.

    Args:
        name: of the scan, with its comparison's before it: `feeds.all`.
        after: where the page begins; see `Scan`.
    """

    comparison: Comparison
    name: str
    scan: Scan
    after: str | None


def _qualified(comparison: Comparison, name: str) -> str:
    return f"{comparison.name}.{name}"


def _fingerprints(found: Sequence[Difference]) -> frozenset[str]:
    return frozenset(one.fingerprint for one in found)


class Reconciler:
    """Carries out the runs, while its process is the leader.

    Args:
        run_seconds: a run begins this long after the last complete one ended.
        run_limit_seconds: a run that takes longer is given up.
        grace_seconds: between two looks at a suspect. Only what both find alike is a difference.
        poll_seconds: how soon a requested run is noticed.
    """

    def __init__(
        self,
        database: Database,
        comparisons: Sequence[Comparison],
        *,
        run_seconds: float,
        run_limit_seconds: float,
        grace_seconds: float,
        poll_seconds: float,
    ) -> None:
        LONGEST_GAP_SECONDS.set(run_seconds + run_limit_seconds)
        self._database = database
        self._comparisons = {comparison.name: comparison for comparison in comparisons}
        self._starting_anew = [
            _qualified(comparison, name)
            for comparison in comparisons
            for name in comparison.starts_anew
        ]
        self._run_seconds = run_seconds
        self._run_limit_seconds = run_limit_seconds
        self._grace_seconds = grace_seconds
        self._poll_seconds = poll_seconds
        self._backoff = ComparisonBackoff()
        self._turns = Turns()
        self._had_nothing_to_do = False
        """At the last step."""
        self._log = structlog.get_logger("reconciliation")

    async def run_for_ever(self) -> NoReturn:
        """Carry out runs while this process is the leader; stand for election otherwise."""
        while True:
            try:
                async with leadership(self._database, LEASE) as term:
                    self._log.info("reconciliation_leading")
                    await self._lead(term)
            except Exception as error:  # the lease was lost: stand for election again
                self._log.warning("reconciliation_not_leading", exc_info=error)
            await asyncio.sleep(ELECTION_SECONDS)

    async def _lead(self, term: Term) -> NoReturn:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(2 * STEP_SECONDS):
                    wait_seconds = await self.step(term)
            except LeadershipLost:
                raise
            except Exception as error:
                # The database is away: tried again, until the run is given up.
                FAILURES.inc()
                failures += 1
                pause_seconds = RETRIES.pause_seconds(failures)
                self._log.warning(
                    "reconciliation_step_failed", retry_seconds=pause_seconds, exc_info=error
                )
                await asyncio.sleep(pause_seconds)
            else:
                failures = 0
                await asyncio.sleep(wait_seconds)

    async def step(self, term: Term) -> float:
        """One page, one batch of looks, or the end of the run; how long to wait before the next step."""
        if self._had_nothing_to_do and await self._has_nothing_to_do():
            return self._poll_seconds
        async with self._fenced(term) as connection:
            run = await runs.under_way(connection) or await runs.begin(
                connection, self._starting_anew
            )
            if run is None and await runs.request_when_due(
                connection, runs.SCHEDULE, self._run_seconds
            ):
                run = await runs.begin(connection, self._starting_anew)
            self._had_nothing_to_do = run is None
            if run is None:
                return self._poll_seconds
            age = await runs.age_seconds(connection, run.run_id)
            positions = await runs.scans(connection)
            # A run that began in the future began before PostgreSQL's clock was set back: how long it has taken is not
            # known. The clock may be corrected by a little.
            is_late = not -self._grace_seconds <= age <= self._run_limit_seconds
            standing = positions.get(runs.STANDING)
            if standing is not None and not standing.is_done and not is_late:
                await runs.add_standing(connection, run.run_id, standing.next_after)
                return 0
        if is_late:
            await self._finish(term, run, "gave_up")
            return 0
        paused = self._backoff.remaining()
        page = self._next_page(positions, paused)
        if page is None:
            return await self._look_again(term, run, paused)
        if self._turns.is_of_looks():
            found = await self._find_due(run, paused)
            if found is not None and found.due:
                await self._attempt(found.comparison, self._look(term, run, found))
                return 0
            self._turns.give_to_scans()
        await self._attempt(page.comparison.name, self._scan_page(term, run, page))
        return 0

    async def _has_nothing_to_do(self) -> bool:
        async with self._database.driver() as connection:
            return await runs.is_nothing_to_do(connection, self._run_seconds)

    def _next_page(
        self, positions: Mapping[str, ScanPosition], paused: Collection[str]
    ) -> _NextPage | None:
        for comparison in self._comparisons.values():
            if comparison.name in paused:
                continue
            for name, scan in comparison.scans.items():
                qualified = _qualified(comparison, name)
                position = positions.get(qualified, ScanPosition())
                if not position.is_done:
                    return _NextPage(comparison, qualified, scan, position.next_after)
        return None

    @asynccontextmanager
    async def _fenced(self, term: Term) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits only while this process leads."""
        async with self._database.transaction() as connection:
            await fence(connection, term)
            yield connection

    async def _attempt(self, name: str, work: Awaitable[None]) -> None:
        """Do one page or one look. A failure is logged, counted and retried after a pause of its comparison."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await work
        except LeadershipLost:
            raise
        except Exception as error:
            FAILURES.inc()
            self._log.warning(
                "comparison_failed",
                comparison=name,
                retry_seconds=self._backoff.failed(name),
                exc_info=error,
            )
        else:
            self._backoff.succeeded(name)

    async def _scan_page(self, term: Term, run: Run, page: _NextPage) -> None:
        scanned = await page.scan(page.after, time.time() + STEP_SECONDS)
        async with self._fenced(term) as connection:
            if scanned.suspects:
                await suspects.add(connection, page.comparison.name, scanned.suspects)
            if scanned.record is not None:
                await scanned.record(connection)
            await runs.count(
                connection,
                run.run_id,
                looked_at=scanned.looked_at,
                suspected=len(scanned.suspects),
            )
            await runs.advance_scan(connection, run.run_id, page.name, scanned.next_after)
            crash_point("reconciliation.scanning")
        crash_point("reconciliation.scanned")

    async def _find_due(self, run: Run, paused: Mapping[str, float]) -> Suspects | None:
        """See `suspects.find_due`. Those of comparisons that only another release knows are left to that release."""
        names = self._comparisons.keys() - paused.keys()
        async with self._database.transaction() as connection:
            return await suspects.find_due(
                connection,
                run.run_id,
                LOOK_AT_ONCE,
                names,
                # Twice the pause between two looks: the clock may be corrected by a little.
                longest_seconds=2 * self._grace_seconds,
            )

    async def _look_again(self, term: Term, run: Run, paused: Mapping[str, float]) -> float:
        """Look at suspects that are due, or end the run when none is left; how long to wait before the next step.

        Args:
            paused: comparisons in backoff, with the seconds until they may be tried again.
        """
        found = await self._find_due(run, paused)
        if found is None and not paused:
            await self._finish(term, run, "complete")
            return 0
        if found is None or not found.due:
            waits = [*paused.values(), STEP_SECONDS]
            return min(waits if found is None else [*waits, found.wait_seconds])
        await self._attempt(found.comparison, self._look(term, run, found))
        return 0

    async def _look(self, term: Term, run: Run, suspected: Suspects) -> None:
        keys = [suspect.key for suspect in suspected.due]
        comparison = self._comparisons[suspected.comparison]
        looked = await comparison.look(keys, time.time() + STEP_SECONDS)
        async with self._fenced(term) as connection:
            in_flight = await self._conclude(connection, run, suspected, looked)
            crash_point("reconciliation.settling")
        crash_point("reconciliation.settled")
        if in_flight:
            self._log.info("suspects_in_flight", comparison=comparison.name, keys=in_flight)

    async def _conclude(
        self,
        connection: AsyncConnection,
        run: Run,
        suspected: Suspects,
        looked: Mapping[str, Finding],
    ) -> Sequence[str]:
        """Record the differences that two looks in a row have found alike. Suspects that changed between the looks, or
        are in flight, are looked at again.

        Returns:
            The keys that end as in flight.
        """
        name = suspected.comparison
        settled: dict[str, Sequence[Difference]] = {}
        again: dict[str, frozenset[str]] = {}
        in_flight: list[str] = []
        for suspect in suspected.due:
            finding = looked.get(suspect.key, [])
            if finding is EVIDENCE_GONE:
                continue  # rows stay until an operator explains them
            if finding is IN_FLIGHT:
                if suspect.looks < 1:
                    again[suspect.key] = frozenset()
                else:
                    in_flight.append(suspect.key)
                continue
            drifting = [one.by_kind() if one.drifts else one for one in finding]
            found, found_drifting = _fingerprints(finding), _fingerprints(drifting)
            if found <= suspect.found:
                settled[suspect.key] = finding
            elif suspect.looks < LARGEST_LOOKS:
                again[suspect.key] = found | found_drifting
            elif found_drifting <= suspect.found:
                settled[suspect.key] = drifting
            else:
                in_flight.append(suspect.key)
        done = [suspect.key for suspect in suspected.due if suspect.key not in again]
        await differences.settle(connection, name, settled)
        await suspects.remove(connection, name, done)
        await suspects.look_again(connection, run.run_id, name, again, self._grace_seconds)
        await runs.count(connection, run.run_id, in_flight=len(in_flight))
        return in_flight

    async def _finish(self, term: Term, run: Run, outcome: Outcome) -> None:
        async with self._fenced(term) as connection:
            await runs.finish(connection, run.run_id, outcome)
            ended = await runs.find(connection, run.run_id)
        RUNS.labels(outcome).inc()
        if ended is not None:
            self._log.info(
                "run_ended",
                run_id=str(run.run_id),
                cause=run.cause,
                outcome=outcome,
                looked_at=ended.looked_at,
                suspected=ended.suspected,
                in_flight=ended.in_flight,
                differing=ended.differing,
            )
        await self._purge(term)

    async def _purge(self, term: Term) -> None:
        """In transactions of its own: the end of the run does not depend on how much there is to delete."""
        until = time.monotonic() + PURGE_SECONDS
        async with self._fenced(term) as connection:
            await runs.purge(connection, RUN_DAYS)
        there_may_be_more = True
        while there_may_be_more and time.monotonic() < until:
            async with self._fenced(term) as connection:
                there_may_be_more = await differences.purge(connection, CLOSED_DAYS)
