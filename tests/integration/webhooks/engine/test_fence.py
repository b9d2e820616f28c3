"""Who records what became of a delivery: nobody but the one whose claim it is, at the moment of the record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID, uuid4

import pytest

from services.webhook_dispatcher.engine.attempts import AttemptRecorder
from services.webhook_dispatcher.engine.claiming import LeasedDelivery
from services.webhook_dispatcher.engine.delivering import AttemptedDelivery
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome
from services.webhook_dispatcher.repository import finishing
from services.webhook_dispatcher.repository.claims import Claimed, DueSubscription
from services.webhook_dispatcher.repository.finishing import Ending
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig, claimed
from tests.support.waiting import eventually


@pytest.mark.parametrize("concluded", ["succeeded", None])
@pytest.mark.parametrize("taken_by", ["nobody", "another"])
async def test_a_record_that_waits_while_its_claim_is_taken_away_records_nothing(
    rig: Rig, concluded: Literal["succeeded"] | None, taken_by: str
) -> None:
    subscription, delivery, claim = await rig.subscribe("/a"), uuid4(), uuid4()
    await claimed(rig, subscription, [delivery], claim)
    now = datetime.now(UTC)
    ending = Ending(
        delivery_id=delivery,
        claim=claim,
        concluded=concluded,
        due_at=None if concluded else now,
        attempted_at=now,
        duration_ms=1,
        response_status=200,
        error=None,
        response_body=None,
    )

    async def record() -> set[UUID]:
        async with rig.database.driver() as connection:
            return {*await finishing.finish(connection, [ending])}

    async with rig.database.driver_transaction() as holder:
        if taken_by == "nobody":
            await holder.execute("UPDATE delivery SET claim = NULL, lease_until = NULL")
        else:
            await holder.execute("UPDATE delivery SET claim = gen_random_uuid()")
        recording = asyncio.create_task(record())
        await eventually(
            "a record that waits", lambda: rig.waits_for_lock("transactionid", "tuple")
        )
    recorded = await recording

    assert recorded == set()
    assert await rig.attempts(subscription) == []
    [left] = await rig.deliveries(subscription)
    assert (left.id, left.attempts_made) == (delivery, 0)


async def test_a_failure_that_waits_while_its_delivery_is_released_leaves_it_due(rig: Rig) -> None:
    subscription, delivery, claim = await rig.subscribe("/a"), uuid4(), uuid4()
    await claimed(rig, subscription, [delivery], claim)
    ending = Ending(
        delivery_id=delivery,
        claim=claim,
        concluded="failed",
        due_at=None,
        attempted_at=datetime.now(UTC),
        duration_ms=1,
        response_status=500,
        error=None,
        response_body=None,
    )

    async def record() -> dict[UUID, finishing.Conclusion | None]:
        async with rig.database.driver() as connection:
            return await finishing.finish(connection, [ending])

    async with rig.database.driver_transaction() as holder:
        await holder.execute(
            "UPDATE delivery SET state = 'pending', held_at = NULL, released_at = clock_timestamp()"
        )
        recording = asyncio.create_task(record())
        await eventually(
            "a record that waits", lambda: rig.waits_for_lock("transactionid", "tuple")
        )
    recorded = await recording

    assert recorded == {delivery: None}
    [attempt] = await rig.attempts(subscription)
    [left] = await rig.deliveries(subscription)
    assert (attempt.number, attempt.concluded) == (1, None)
    assert (left.claim, left.attempts_made, left.schedule_from) == (None, 1, 1)


async def test_what_was_claimed_anew_while_its_first_attempt_waited_is_recorded_once(
    rig: Rig,
) -> None:
    """Both are there to be recorded: during an outage that is longer than a lease, that comes about."""
    subscription, delivery, second = await rig.subscribe("/a"), uuid4(), uuid4()
    await claimed(rig, subscription, [delivery], second)
    partitions, settings = Partitions(rig.database), DeliverySettings()
    unavailability = Unavailability(rig.database, partitions, settings, rig.clock, lambda: None)
    done: list[AttemptedDelivery] = []
    recorder = AttemptRecorder(
        rig.database, partitions, unavailability, settings, rig.clock, lambda: 0.5, done.extend
    )
    recorder.add(attempted(rig, subscription, delivery, uuid4(), "of the first claim"))
    recorder.add(attempted(rig, subscription, delivery, second, "of the second"))

    async def all_done() -> bool:
        assert not running.done(), running.exception()
        return len(done) == 2

    running = asyncio.create_task(recorder.run())
    try:
        await eventually("both are done with", all_done)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    [attempt] = await rig.attempts(subscription)
    assert (attempt.number, attempt.response_body) == (1, "of the second")
    assert await rig.deliveries(subscription) == []


def attempted(
    rig: Rig, subscription: UUID, delivery: UUID, claim: UUID, answer: str
) -> AttemptedDelivery:
    now = rig.clock()
    to = DueSubscription(subscription, "t_1", "", b"", None, None, 0, False, False, 0, 1, now)
    what = Claimed(delivery, subscription, now.date(), uuid4(), 0, 0, now, None, now, b"{}")
    attempt = Attempt(
        outcome=AttemptOutcome.SUCCEEDED,
        attempted_at=now,
        duration_ms=1,
        response_status=200,
        response_body=answer,
    )
    return AttemptedDelivery(LeasedDelivery(what, to, claim, 0.0, b"{}"), attempt)
