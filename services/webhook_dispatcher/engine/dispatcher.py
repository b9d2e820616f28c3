"""Claiming what is due and sending it.

Looked at are the subscriptions that were seen or said to have something due; all others in a sweep every 250 ms. A
sweep looks at each subscription that waits for anything, a retry tomorrow too: where these are so many that it takes
long, sweeps are rarer, so that they take at most a tenth of the time.

No NOTIFY wakes other processes: the one that records an event is woken at once and claims for all subscriptions, so
another is needed only when its slots are used up, and then 250 ms are not what is waited for. A NOTIFY would take an
instance-wide lock at the commit of every batch.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from uuid import UUID, uuid4

import asyncpg
import structlog

from libs.persistence.engine import Database
from libs.persistence.sealing import CannotOpen
from libs.runtime.crash import crash_point
from libs.signing.webhook import WebhookSecretError
from services.webhook_dispatcher.engine.allocation import (
    IN_FLIGHT,
    allocate,
    in_turn,
    most_due,
)
from services.webhook_dispatcher.engine.patience import until_done
from services.webhook_dispatcher.engine.rules import POST_SECONDS, Rules
from services.webhook_dispatcher.engine.sent import Leased, Sent
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.metrics import FIRST_ATTEMPT_SECONDS
from services.webhook_dispatcher.ports import Attempt, Poster, Verdict
from services.webhook_dispatcher.repository import claims
from services.webhook_dispatcher.repository.claims import Candidate, Claimed

POLL_SECONDS = 0.25
BEGUN_AT_ONCE = 8
"""Then what has come meanwhile has its turn: answers of endpoints, and of the database. Begun all at once, a claim's
posts held up the next claim and the record of the last ones: a tenth of the rate.
"""
READY_SHARE = 2
"""The next claim is made while one part in so many of the slots has yet to be begun, so that there is something to post
until it is there: a tenth of the rate.
"""
SWEEPING_SHARE = 10
"""Sweeping takes at most one part in so many of the time."""


class Dispatcher:
    """Has at most `rules.slots` deliveries under way, from their claim until their attempt is recorded.

    Args:
        ended: is given what was sent, and says `finished` when that is recorded.
    """

    def __init__(
        self,
        database: Database,
        poster: Poster,
        signer: Signer,
        rules: Rules,
        clock: Callable[[], datetime],
        ended: Callable[[Sent], None],
    ) -> None:
        self._database = database
        self._poster = poster
        self._signer = signer
        self._rules = rules
        self._clock = clock
        self._ended = ended
        self._used: Counter[str] = Counter()
        self._active: dict[UUID, datetime] = {}
        """Subscriptions that may have something due, and since when."""
        self._swept_until = claims.FIRST
        self._sweep_seconds = 0.0
        self._may_sweep_at = 0.0
        self._sweep_at = 0.0
        self._sweep_wanted = False
        self._served_until = claims.FIRST
        self._ready: deque[tuple[Leased, bytes]] = deque()
        """Claimed, and not begun."""
        self._may_wait = rules.slots // READY_SHARE
        self._any_ready = asyncio.Event()
        self._wake = asyncio.Event()
        self._none_used = asyncio.Event()
        self._none_used.set()
        self._claiming = asyncio.Lock()
        self._stopping = False
        self._log = structlog.get_logger("webhooks")

    def wake(self) -> None:
        """Say that something may be due, so that the sweep need not be waited for."""
        self._sweep_wanted = True
        self._wake.set()

    def added(self, subscriptions: Sequence[UUID], due_at: datetime) -> None:
        """Say that these have something due since then."""
        for subscription_id in subscriptions:
            self._note_due(subscription_id, due_at)
        self._wake.set()

    def finished(self, batch: Sequence[Sent]) -> None:
        for sent in batch:
            self._release(sent.leased)

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as sending:
            sending.create_task(self._begin_for_ever(sending), name="beginning")
            while True:
                self._wake.clear()
                if await until_done("claim", self._claim):
                    continue
                try:
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def stop(self, seconds: float) -> None:
        """Begin nothing more; let what is under way be recorded, for so long.

        A claim that is under way too: what it takes is given back.
        """
        self._stopping = True
        try:
            async with asyncio.timeout(seconds):
                async with self._claiming:
                    pass
                await self._none_used.wait()
        except TimeoutError:
            self._log.warning("deliveries_left_to_their_leases", count=self._used.total())

    async def _claim(self) -> bool:
        """Claim what may be begun; true when it is worth looking again at once."""
        sweeping = asyncio.get_running_loop().time() >= self._next_sweep_at()
        if not self._may_claim() or not (sweeping or self._active):
            return False
        async with self._claiming:
            return await self._claim_some(sweeping=sweeping)

    async def _claim_some(self, *, sweeping: bool) -> bool:
        started = asyncio.get_running_loop().time()
        if sweeping and self._swept_until == claims.FIRST:
            self._sweep_wanted = False
        now, claim = self._clock(), uuid4()
        async with claims.claiming(self._database) as connection:
            # A sweep is not charged for others' claims, which it had to wait for.
            looking_since = asyncio.get_running_loop().time()
            due_from = (
                dict.fromkeys(
                    await claims.with_work(connection, after=self._swept_until), claims.EVER
                )
                if sweeping
                else self._some_active()
            )
            most = most_due(len(due_from), self._rules.slots - self._used.total())
            found = await claims.candidates(connection, due_from, now, most_due=most)
            counts = allocate(
                in_turn(found, self._served_until),
                self._used,
                slots=self._rules.slots,
                used=self._used.total(),
            )
            claimed = await self._take(connection, counts, due_from, claim, now) if counts else []
        if counts:
            self._served_until = next(reversed(counts))
        self._note_found(found, claimed)
        has_more = len(due_from) == claims.MOST_SUBSCRIPTIONS
        if sweeping:
            self._note_sweep(looking_since, next(reversed(due_from)) if has_more else None)
        by_id = {candidate.subscription_id: candidate for candidate in found}
        begin_before = started + self._rules.lease_seconds - POST_SECONDS
        kept: Counter[UUID] = Counter()
        for delivery in claimed:
            if delivery.body is not None:
                to = by_id[delivery.subscription_id]
                self._hold(Leased(delivery, to, claim, begin_before), delivery.body)
                kept[delivery.subscription_id] += 1
        counted_short = most < IN_FLIGHT and most in kept.values()
        return counted_short or (has_more and (sweeping or bool(counts)))

    async def _take(
        self,
        connection: asyncpg.Connection,
        counts: Mapping[UUID, int],
        due_from: Mapping[UUID, datetime],
        claim: UUID,
        now: datetime,
    ) -> list[Claimed]:
        claimed = await claims.take(
            connection, counts, due_from, claim, now=now, lease_seconds=self._rules.lease_seconds
        )
        without_event = [delivery for delivery in claimed if delivery.body is None]
        if without_event:
            first_kept = now.date() - self._rules.retention
            await self._let_go(connection, without_event, claim, first_kept)
        return claimed

    async def _let_go(
        self,
        connection: asyncpg.Connection,
        without_event: Sequence[Claimed],
        claim: UUID,
        first_kept: date,
    ) -> None:
        """Drop deliveries whose event is kept no longer.

        The others' events are there: a statement that was planned just before the first event of a day was recorded
        does not know the partition of that day. Those of the next sweep do.
        """
        lost = [delivery.id for delivery in without_event if delivery.event_day < first_kept]
        unseen = [delivery.id for delivery in without_event if delivery.event_day >= first_kept]
        self._log.error("deliveries_without_event", dropped=len(lost), given_back=len(unseen))
        await claims.drop(connection, lost, claim)
        await claims.give_back(connection, unseen, claim)

    def _may_claim(self) -> bool:
        return (
            not self._stopping
            and len(self._ready) <= self._may_wait
            and self._used.total() < self._rules.slots
        )

    def _pause(self) -> float:
        """How long to wait to be woken. While nothing may be claimed, whoever begins or ends something wakes us."""
        if not self._may_claim():
            return POLL_SECONDS
        pause = self._next_sweep_at() - asyncio.get_running_loop().time()
        return min(max(pause, 0.001), POLL_SECONDS)

    def _some_active(self) -> dict[UUID, datetime]:
        """Those that were looked at longest ago. They are active again once something due is found or said."""
        some = dict(islice(self._active.items(), claims.MOST_SUBSCRIPTIONS))
        for subscription_id in some:
            del self._active[subscription_id]
        return some

    def _note_found(self, found: Sequence[Candidate], claimed: Sequence[Claimed]) -> None:
        """More may be due of them, from where their claim ended.

        What became due earlier, or was passed over or given back, is found by the next sweep.
        """
        ended = {delivery.subscription_id: delivery.due_at for delivery in claimed}
        for one in found:
            self._note_due(one.subscription_id, ended.get(one.subscription_id, one.due_since))

    def _note_due(self, subscription_id: UUID, since: datetime) -> None:
        self._active[subscription_id] = min(since, self._active.get(subscription_id, since))

    def _next_sweep_at(self) -> float:
        if self._swept_until != claims.FIRST:
            return 0.0  # it is under way
        return self._may_sweep_at if self._sweep_wanted else self._sweep_at

    def _note_sweep(self, started: float, until: UUID | None) -> None:
        """Part of a sweep is done: until a subscription, or all of it."""
        ended = asyncio.get_running_loop().time()
        self._sweep_seconds += ended - started
        if until is not None:
            self._swept_until = until
            return
        self._swept_until = claims.FIRST
        self._may_sweep_at = ended + self._sweep_seconds * SWEEPING_SHARE
        self._sweep_at = max(self._may_sweep_at, ended + POLL_SECONDS)
        self._sweep_seconds = 0.0

    def _hold(self, leased: Leased, body: bytes) -> None:
        """From here on it uses a slot."""
        self._used[leased.to.tenant] += 1
        self._none_used.clear()
        self._ready.append((leased, body))
        self._any_ready.set()

    async def _begin_for_ever(self, sending: asyncio.TaskGroup) -> None:
        while True:
            await self._any_ready.wait()
            were_enough = len(self._ready) > self._may_wait
            for _ in range(min(BEGUN_AT_ONCE, len(self._ready))):
                leased, body = self._ready.popleft()
                sending.create_task(self._send(leased, body), name="delivery")
            if not self._ready:
                self._any_ready.clear()
            if were_enough and len(self._ready) <= self._may_wait:
                self._wake.set()
            await asyncio.sleep(0)

    def _release(self, leased: Leased) -> None:
        tenant = leased.to.tenant
        self._used[tenant] -= 1
        if not self._used[tenant]:
            del self._used[tenant]
        if not self._used:
            self._none_used.set()
        self._wake.set()

    async def _send(self, leased: Leased, body: bytes) -> None:
        crash_point("webhook_dispatcher.claimed")
        delivery = leased.delivery
        if self._stopping or asyncio.get_running_loop().time() > leased.begin_before:
            self._log.warning("given_back", delivery=str(delivery.id), stopping=self._stopping)
            await until_done("give back", lambda: self._give_back(leased))
            self._release(leased)
            return
        attempt = await self._attempt(leased, body)
        crash_point("webhook_dispatcher.posted")
        if delivery.attempts_made == 0:
            waited = attempt.attempted_at - delivery.created_at
            FIRST_ATTEMPT_SECONDS.observe(max(0.0, waited.total_seconds()))
        self._ended(Sent(leased, attempt))

    async def _give_back(self, leased: Leased) -> None:
        async with self._database.driver() as connection:
            await claims.give_back(connection, [leased.delivery.id], leased.claim)

    async def _attempt(self, leased: Leased, body: bytes) -> Attempt:
        now = self._clock()
        try:
            post = self._signer.post(leased.to, leased.delivery.event_id, body, now)
        except (CannotOpen, WebhookSecretError) as error:
            self._log.error(
                "cannot_sign", subscription=str(leased.to.subscription_id), exc_info=error
            )
            return Attempt(
                verdict=Verdict.NOT_TRIED,
                attempted_at=now,
                duration_ms=0,
                error="It could not be signed, and was not sent.",
            )
        return await self._poster.post(post)
