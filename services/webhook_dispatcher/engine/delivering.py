"""Posting claimed deliveries to their endpoints."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from libs import tracing
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.persistence.sealing import CannotOpen
from libs.runtime.crash import crash_point
from libs.runtime.request_log import request_log
from libs.signing.webhook import WebhookSecretError
from services.webhook_dispatcher.delivery_headers import message_id_of
from services.webhook_dispatcher.engine.claiming import LeasedDelivery
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.metrics import ATTEMPT_SECONDS, FIRST_ATTEMPT_SECONDS
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome, Poster
from services.webhook_dispatcher.repository import claims

BEGUN_AT_ONCE = 8
"""Posts that begin before other tasks run: answers of endpoints and of the database. If all posts of a claim began at
once, they would delay the next claim and the record of the last attempts: measured, a tenth of the rate.
"""


@dataclass(frozen=True, slots=True)
class AttemptedDelivery:
    leased: LeasedDelivery
    attempt: Attempt


class Sender:
    """Posts deliveries in the order in which they are added, each in a task of its own.

    Args:
        low: as many deliveries ready to be posted are few.
        attempted: called with each delivery that was attempted, whether or not it succeeded.
        given_back: called with each delivery that was not attempted, and whose claim was released.
        ran_low: called when the deliveries ready to be posted have become few.
    """

    def __init__(
        self,
        database: Database,
        poster: Poster,
        signer: Signer,
        clock: Callable[[], datetime],
        *,
        low: int,
        attempted: Callable[[AttemptedDelivery], None],
        given_back: Callable[[LeasedDelivery], None],
        ran_low: Callable[[], None],
    ) -> None:
        self._database = database
        self._poster = poster
        self._signer = signer
        self._clock = clock
        self._low = low
        self._attempted = attempted
        self._given_back = given_back
        self._ran_low = ran_low
        self._ready: deque[LeasedDelivery] = deque()
        self._any_ready = asyncio.Event()
        self._stopping = False
        self._log = structlog.get_logger("webhooks")

    @property
    def is_low(self) -> bool:
        return len(self._ready) <= self._low

    def add(self, leased: LeasedDelivery) -> None:
        self._ready.append(leased)
        self._any_ready.set()

    def stop(self) -> None:
        """Begin no more posts: give back the deliveries that are ready."""
        self._stopping = True

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as posts:
            while True:
                await self._any_ready.wait()
                was_low = self.is_low
                for _ in range(min(BEGUN_AT_ONCE, len(self._ready))):
                    posts.create_task(self._deliver(self._ready.popleft()), name="delivery")
                if not self._ready:
                    self._any_ready.clear()
                if self.is_low and not was_low:
                    self._ran_low()
                await asyncio.sleep(0)

    async def _deliver(self, leased: LeasedDelivery) -> None:
        crash_point("webhook_dispatcher.claimed")
        delivery = leased.delivery
        if self._stopping or asyncio.get_running_loop().time() > leased.begin_before:
            self._log.warning(
                "delivery_given_back", delivery=str(delivery.id), stopping=self._stopping
            )
            await until_available("give back", lambda: self._give_back(leased))
            self._given_back(leased)
            return
        with _posting(leased) as span:
            attempt = await self._attempt(leased)
            if span is not None:
                _conclude(span, attempt)
        crash_point("webhook_dispatcher.posted")
        request_log.line(
            "delivery_attempted",
            delivery=str(delivery.id),
            event_id=message_id_of(delivery.event_id),
            subscription=str(leased.subscription.id),
            outcome=attempt.outcome.value,
            status=attempt.response_status,
            seconds=attempt.duration_ms / 1000,
            request_id=delivery.request_id,
        )
        ATTEMPT_SECONDS.observe(attempt.duration_ms / 1000)
        if delivery.attempts_made == 0 and attempt.outcome is not AttemptOutcome.NOT_TRIED:
            waited = attempt.attempted_at - delivery.created_at
            FIRST_ATTEMPT_SECONDS.observe(max(0.0, waited.total_seconds()))
        self._attempted(AttemptedDelivery(leased, attempt))

    async def _give_back(self, leased: LeasedDelivery) -> None:
        async with self._database.driver() as connection:
            await claims.give_back(connection, [leased.delivery.id], leased.claim)

    async def _attempt(self, leased: LeasedDelivery) -> Attempt:
        now = self._clock()
        try:
            post = self._signer.post(
                leased.subscription, leased.delivery.event_id, leased.body, now
            )
        except (CannotOpen, WebhookSecretError) as error:
            self._log.error("cannot_sign", subscription=str(leased.subscription.id), exc_info=error)
            return Attempt(
                outcome=AttemptOutcome.NOT_TRIED,
                attempted_at=now,
                duration_ms=0,
                error="It could not be signed, and was not sent.",
            )
        # As of the moment that was signed: so an operator sees which timestamp was sent.
        return replace(await self._poster.post(post), attempted_at=now)


def _posting(leased: LeasedDelivery) -> tracing.Spanning:
    """The span of an attempt, with the subscription in place of the callback URL, which may hold a secret. The endpoint
    is told nothing of the trace (`libs/contracts/README.md`).
    """
    delivery = leased.delivery
    if (parent := tracing.parent(delivery.trace)) is None:
        return tracing.NOTHING
    return tracing.span(
        "POST webhook",
        "client",
        parent,
        {
            "http.request.method": "POST",
            "http.request.resend_count": delivery.attempts_made or None,
            "bankside.event_id": message_id_of(delivery.event_id),
            "bankside.event_type": delivery.event_type,
            "bankside.delivery_id": str(delivery.id),
            "bankside.subscription_id": str(delivery.subscription_id),
            "bankside.request_id": delivery.request_id,
        },
    )


def _conclude(span: tracing.Span, attempt: Attempt) -> None:
    span.set(
        {
            "bankside.outcome": attempt.outcome.value,
            "http.response.status_code": attempt.response_status,
        }
    )
    if attempt.outcome is not AttemptOutcome.SUCCEEDED:
        status = attempt.response_status
        span.fail(attempt.outcome.value if status is None else str(status))
