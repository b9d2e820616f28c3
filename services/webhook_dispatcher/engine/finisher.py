"""How attempts ended, written in batches: what ends while one is being written goes into the next."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import structlog

from libs.persistence.engine import Database
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.engine.days import Days
from services.webhook_dispatcher.engine.death import may_be_dead
from services.webhook_dispatcher.engine.giving_up import GivingUp
from services.webhook_dispatcher.engine.health import after_attempt, ended_at
from services.webhook_dispatcher.engine.patience import until_done
from services.webhook_dispatcher.engine.rules import Rules
from services.webhook_dispatcher.engine.schedule import Random, next_attempt_at
from services.webhook_dispatcher.engine.sent import Sent
from services.webhook_dispatcher.metrics import ATTEMPTS, CLAIMS_LOST, CONCLUDED
from services.webhook_dispatcher.ports import Verdict
from services.webhook_dispatcher.repository import finishing, healths
from services.webhook_dispatcher.repository.finishing import Ending
from services.webhook_dispatcher.repository.healths import Health

BATCH = 256


class Finisher:
    """Records attempts, one batch at a time. At most as many wait as the dispatcher has slots.

    Args:
        done: told of each batch, when it is recorded.
    """

    def __init__(
        self,
        database: Database,
        days: Days,
        giving_up: GivingUp,
        rules: Rules,
        clock: Callable[[], datetime],
        random: Random,
        done: Callable[[Sequence[Sent]], None],
    ) -> None:
        self._database = database
        self._days = days
        self._giving_up = giving_up
        self._rules = rules
        self._clock = clock
        self._random = random
        self._done = done
        self._waiting: deque[Sent] = deque()
        self._any = asyncio.Event()
        self._log = structlog.get_logger("webhooks")

    def add(self, sent: Sent) -> None:
        self._waiting.append(sent)
        self._any.set()

    async def run(self) -> None:
        """Work for ever."""
        while True:
            await self._any.wait()
            batch = self._next_batch()
            if not self._waiting:
                self._any.clear()
            await self.write(batch)
            self._done(batch)

    def _next_batch(self) -> list[Sent]:
        """Each delivery once: one whose lease ended while it waited here may have been claimed and sent again."""
        batch: dict[UUID, Sent] = {}
        while self._waiting and len(batch) < BATCH:
            if self._waiting[0].leased.delivery.id in batch:
                break
            sent = self._waiting.popleft()
            batch[sent.leased.delivery.id] = sent
        return list(batch.values())

    async def write(self, batch: Sequence[Sent]) -> None:
        """Returns when the batch is recorded, and nothing more is sent to those that answered 410."""
        endings = [self._ending(sent) for sent in batch]
        recorded, known = await until_done("finish", lambda: self._commit(batch, endings))
        self._count(batch, endings, recorded)
        now = self._clock()
        gone = {
            (sent.leased.delivery.subscription_id, sent.leased.to.generation)
            for sent in batch
            if sent.attempt.verdict is Verdict.GONE and sent.leased.delivery.id in recorded
        }
        for subscription_id, health in known.items():
            wants_nothing = (subscription_id, health.generation) in gone
            if wants_nothing or may_be_dead(health, now):
                await self._giving_up.consider(subscription_id, health, wants_nothing=wants_nothing)

    def _ending(self, sent: Sent) -> Ending:
        attempt, delivery = sent.attempt, sent.leased.delivery
        due_at = None
        if attempt.verdict is not Verdict.SUCCEEDED:
            due_at = next_attempt_at(
                self._rules.retry_seconds,
                delivery.attempts_made + 1,
                ended_at(attempt),
                attempt.retry_after,
                self._random,
            )
        succeeded = attempt.verdict is Verdict.SUCCEEDED
        return Ending(
            delivery_id=delivery.id,
            claim=sent.leased.claim,
            concluded="succeeded" if succeeded else "failed" if due_at is None else None,
            due_at=due_at,
            attempted_at=attempt.attempted_at,
            duration_ms=attempt.duration_ms,
            response_status=attempt.response_status,
            error=attempt.error,
            response_body=attempt.response_body,
        )

    async def _commit(
        self, batch: Sequence[Sent], endings: Sequence[Ending]
    ) -> tuple[set[UUID], dict[UUID, Health]]:
        """The deliveries that were recorded, and how their endpoints are now."""
        days = {ending.attempted_at.astimezone(UTC).date() for ending in endings}
        await self._days.ensure("attempt", days)
        news = list(zip(batch, endings, strict=True))
        ids = {sent.leased.delivery.subscription_id for sent in batch}
        async with self._database.driver() as connection:
            known = await healths.read(connection, ids)
            changing = _changing(known, news)
            if not changing:
                crash_point("webhook_dispatcher.finishing")
                recorded = await finishing.finish(connection, endings)
        if changing:
            async with self._database.driver_transaction() as connection:
                recorded = await finishing.finish(connection, endings)
                # What was read may have moved on: it is read again under its lock.
                locked = await healths.lock(connection, changing)
                moved = _heard(locked, [one for one in news if one[1].delivery_id in recorded])
                if moved:
                    await healths.save(connection, moved)
                crash_point("webhook_dispatcher.finishing")
            known |= moved
        crash_point("webhook_dispatcher.finished")
        return recorded, known

    def _count(
        self, batch: Sequence[Sent], endings: Sequence[Ending], recorded: Collection[UUID]
    ) -> None:
        verdicts: Counter[str] = Counter()
        conclusions: Counter[str] = Counter()
        for sent, ending in zip(batch, endings, strict=True):
            if ending.delivery_id not in recorded:
                self._log.warning("claim_lost", delivery=str(ending.delivery_id))
                CLAIMS_LOST.inc()
                continue
            verdicts[sent.attempt.verdict.value] += 1
            if ending.concluded is not None:
                conclusions[ending.concluded] += 1
        for verdict, count in verdicts.items():
            ATTEMPTS.labels(verdict).inc(count)
        for how, count in conclusions.items():
            CONCLUDED.labels(how).inc(count)


def _changing(known: Mapping[UUID, Health], news: Sequence[tuple[Sent, Ending]]) -> set[UUID]:
    """The endpoints of which some of the news, each by itself, says something that is not known."""
    return {
        sent.leased.delivery.subscription_id
        for sent, ending in news
        if (health := known.get(sent.leased.delivery.subscription_id)) is not None
        and _after(health, sent, ending) != health
    }


def _heard(known: Mapping[UUID, Health], news: Sequence[tuple[Sent, Ending]]) -> dict[UUID, Health]:
    """These healths after the news, in the order in which they came."""
    after = dict(known)
    for sent, ending in news:
        key = sent.leased.delivery.subscription_id
        if key in after:
            after[key] = _after(after[key], sent, ending)
    return after


def _after(health: Health, sent: Sent, ending: Ending) -> Health:
    """News of an endpoint that was replaced are none."""
    if health.generation != sent.leased.to.generation:
        return health
    return after_attempt(health, sent.attempt, failed_for_good=ending.concluded == "failed")
