"""Driving commands under leases: the leases are claimed, renewed, and released at shutdown."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import asyncpg
import structlog

from libs import tracing
from libs.contracts.request_context import RequestContext, request_context
from libs.handling.handled import conclude, note_handled, processing
from libs.handling.outage_log import OutageLog
from libs.handling.running import RETRIES, CommandRunner
from libs.messaging.topology import COMMANDS, commands_queue
from libs.persistence import inbox
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.runtime.crash import crash_point

DRIVES_AT_ONCE, DRIVES_OF_TENANT = 128, 64
"""The most commands that a process drives, and of these the most of one tenant: while a tenant's commands are slow, or
many, those of others are driven. Operators and services count as one tenant. Commands that arrive during a claim may
come on top of what it takes.
"""
SWEEP_SECONDS = 0.5
SWEEP_PAUSE_SECONDS = 0.02
RENEWALS = 6
"""How many times a lease is renewed in its length."""


class Driver:
    """Drives the commands that are leased to this process, at most `DRIVES_AT_ONCE` at a time, of one tenant at most
    `DRIVES_OF_TENANT`.

    Args:
        is_ordered: a command may wait for an earlier one of its ordering key.
    """

    def __init__(
        self,
        service: str,
        database: Database,
        runner: CommandRunner,
        lease_seconds: float,
        *,
        is_ordered: bool,
    ) -> None:
        self._service = service
        self._queue = commands_queue(service)
        self._database = database
        self._runner = runner
        self.lease_seconds = lease_seconds
        self._driving: dict[UUID, tuple[inbox.Leased, asyncio.Task[None]]] = {}
        self._taken = Counter[str]()
        """By tenant, how many of its commands are driven, or have a place while they are recorded."""
        self._is_ordered = is_ordered
        self._undriven: list[inbox.Leased] = []
        """Leases to be released: of drives that an outage of the database has ended, and of commands that came too late
        to be driven, as the driver was stopping.
        """
        self._claiming: asyncio.Task[None] | None = None
        """The last claim of the sweep."""
        self._wake = asyncio.Event()
        self._took_suspect = False
        """The last claim did: the next one takes the others, which come behind the suspects that are due earlier."""
        self._stopping = False
        self._away = OutageLog("commands", "database_away")
        self._log = structlog.get_logger("commands")

    @property
    def capacity(self) -> int:
        """How many more commands may be driven now."""
        if self._stopping:
            return 0
        return max(0, DRIVES_AT_ONCE - self._taken.total())

    def has_place(self, tenant: str) -> bool:
        """Whether a command of the tenant may be driven now."""
        return self._taken[tenant] < DRIVES_OF_TENANT and self.capacity > 0

    @contextmanager
    def place(self, tenant: str) -> Iterator[bool]:
        """Whether there is a place for a command of the tenant. It is kept during the body, which records the command
        and, if it was leased, starts its drive.
        """
        if not self.has_place(tenant):
            yield False
            return
        self._take(tenant)
        try:
            yield True
        finally:
            self._give_up(tenant)

    def _take(self, tenant: str) -> None:
        self._taken[tenant] += 1

    def _give_up(self, tenant: str) -> None:
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]

    def wake(self) -> None:
        """Look for due commands now, rather than at the next sweep."""
        self._wake.set()

    def start(self, leased: inbox.Leased) -> None:
        """Drive a command that was leased to this process, unless that is stopping. A drive of it that is still running
        has lost its lease.
        """
        if self._stopping:
            self._undriven.append(leased)
            return
        if (earlier := self._driving.pop(leased.command_id, None)) is not None:
            self._give_up(earlier[0].tenant)
            earlier[1].cancel()
        self._take(leased.tenant)
        task = asyncio.create_task(self._drive(leased), name=f"drive:{leased.command_id}")
        self._driving[leased.command_id] = (leased, task)
        task.add_done_callback(lambda done: self._ended(leased, done))

    def _ended(self, leased: inbox.Leased, task: asyncio.Task[None]) -> None:
        was_another_place = self.has_place(leased.tenant)
        if self._driving.get(leased.command_id, (None, None))[1] is task:
            del self._driving[leased.command_id]
            self._give_up(leased.tenant)
        # Others may wait for it: for their turn, or for its place.
        if self._is_ordered or leased.is_suspect or not was_another_place:
            self.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The lease expires, and the sweeper of any process claims the command. Such drives are counted.
            self._log.error("drive_died", command=str(leased.command_id), exc_info=error)

    async def _drive(self, leased: inbox.Leased) -> None:
        started = time.perf_counter()
        request_context.set(RequestContext(leased.request_id, None))
        crash_point(f"{self._service}.driving")
        with processing(
            COMMANDS,
            leased.operation,
            self._queue,
            leased.operation,
            leased.message_id,
            leased.trace,
        ) as span:
            if span is not None:
                # Events that this drive records in a group are below its span.
                leased = replace(leased, trace=tracing.current())
            outcome = await self._outcome(leased)
            if span is not None:
                command_id = str(leased.command_id)
                conclude(
                    span,
                    leased.operation,
                    outcome,
                    command_id=command_id,
                    attempts=leased.attempts,
                )
        note_handled(
            "command_driven",
            leased.operation,
            outcome,
            time.perf_counter() - started,
            command=str(leased.command_id),
            attempts=leased.attempts,
        )

    async def _outcome(self, leased: inbox.Leased) -> str:
        try:
            return await self._runner.run(leased)
        except inbox.LeaseLost:
            self._log.warning("lease_lost", command=str(leased.command_id))
            return "lease_lost"
        except Exception as error:
            self._unless_away(error, command=str(leased.command_id))
            self._undriven.append(leased)
            return "database_away"

    async def sweep(self) -> None:
        """Claim and drive due commands, for ever: postponed, left by another process, or next of their ordering key."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if not self.capacity:
                continue
            self._claiming = asyncio.create_task(self._claim(), name="claim-commands")
            await self._claiming
            # Hundreds of commands may end in a second, and each wake this loop: claim once for all of them.
            await asyncio.sleep(SWEEP_PAUSE_SECONDS)

    async def _claim(self) -> None:
        try:
            async with self._database.driver() as connection:
                await self._give_back(connection)
                took_suspect = await self._claim_of_all(connection)
        except Exception as error:
            self._unless_away(error)
            return
        self._took_suspect = took_suspect
        if took_suspect:
            self.wake()

    async def _claim_of_all(self, connection: asyncpg.Connection) -> bool:
        """Claim until none is due for which there is a place. Whether a suspect was claimed.

        A tenant that a claim brings to its limit is passed over by the next ones, also where drives of it have ended
        since: its due commands would hide those of other tenants, which are due later.
        """
        passed_over = Counter[str]()
        took_suspect = False
        # Read each time: acceptance may have leased commands meanwhile.
        while (capacity := self.capacity) > 0:
            driven = self._taken | passed_over
            claimed = await inbox.claim(
                connection,
                capacity,
                self.lease_seconds,
                with_suspect=not (self._drives_suspect or self._took_suspect or took_suspect),
                limit_of_tenant=DRIVES_OF_TENANT,
                driven=driven,
            )
            for leased in claimed:
                self.start(leased)
            took_suspect |= any(leased.is_suspect for leased in claimed)
            taken = Counter(leased.tenant for leased in claimed)
            at_limit = {t for t in taken if driven[t] + taken[t] >= DRIVES_OF_TENANT}
            if at_limit or len(claimed) == capacity:
                self.wake()
            if not at_limit:
                break
            passed_over.update(dict.fromkeys(at_limit, DRIVES_OF_TENANT))
        return took_suspect

    @property
    def _drives_suspect(self) -> bool:
        return any(leased.is_suspect for leased, _ in self._driving.values())

    async def _give_back(self, connection: asyncpg.Connection) -> None:
        """Release leases that would be taken for those of a process that died: an outage is no fault of a command."""
        if cut_off := self._undriven[:]:
            await inbox.release(
                connection, cut_off, lambda leased: RETRIES.pause_seconds(leased.attempts)
            )
            del self._undriven[: len(cut_off)]

    async def renew_leases(self) -> None:
        """Renew the leases of driven commands, for ever; cancel the drives whose leases were lost.

        Leases younger than one renewal period are skipped: short commands finish before they need renewal.
        """
        before: set[UUID] = set()
        while True:
            await asyncio.sleep(self.lease_seconds / RENEWALS)
            due = [(one, task) for one, task in self._driving.values() if one.lease in before]
            before = {leased.lease for leased, _ in self._driving.values()}
            if not due:
                continue
            try:
                async with self._database.driver() as connection:
                    commands = [leased for leased, _ in due]
                    renewed = await inbox.renew(connection, commands, self.lease_seconds)
            except Exception as error:
                self._unless_away(error)
                continue
            for leased, task in due:
                if leased.command_id not in renewed and not self._runner.is_concluding(leased):
                    task.cancel()

    def _unless_away(self, error: Exception, **what: str) -> None:
        if not is_away(error):
            raise error
        self._away.note(error, **what)

    async def stop(self, seconds: float) -> None:
        """Start no more drives, wait up to `seconds` for those under way and for a claim, and release the leases of the
        rest. A claim that takes longer, as where the database hangs, may have leased commands until the leases run out.
        """
        self._stopping = True
        tasks = [task for _, task in self._driving.values()]
        if self._claiming is not None:
            tasks.append(self._claiming)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        left = list(self._driving.values())
        for _, task in left:
            task.cancel()
        if left:
            await asyncio.wait([task for _, task in left], timeout=1)
        if undriven := [*self._undriven, *(leased for leased, _ in left)]:
            try:
                async with self._database.driver() as connection:
                    await inbox.release(connection, undriven)
            except Exception as error:
                self._unless_away(error)
