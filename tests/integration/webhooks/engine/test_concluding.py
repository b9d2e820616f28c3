"""Deliveries that end while their subscription is recovered."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID, uuid4

from sqlalchemy import text

from services.webhook_dispatcher.repository import finishing, recovery
from services.webhook_dispatcher.repository.finishing import Ending
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.repository.recovery import BEGINNING, Failure, ReleasedBatch
from tests.integration.webhooks.engine.rig import Rig, claimed
from tests.support.waiting import eventually

HOUR = timedelta(hours=1)


async def finish(
    rig: Rig,
    ids: list[UUID],
    claim: UUID,
    concluded: Literal["succeeded", "failed"],
    *,
    attempted_at: datetime,
) -> set[UUID]:
    endings = [
        Ending(
            delivery_id=delivery_id,
            claim=claim,
            concluded=concluded,
            due_at=None,
            attempted_at=attempted_at,
            duration_ms=1,
            response_status=None,
            error=None,
            response_body=None,
        )
        for delivery_id in ids
    ]
    async with rig.database.driver() as connection:
        return {*await finishing.finish(connection, endings)}


async def failures(
    rig: Rig, subscription_id: UUID, since: datetime, until: datetime
) -> list[Failure]:
    async with rig.database.transaction() as connection:
        return await recovery.failures(
            connection, subscription_id, since=since, until=until, after=BEGINNING, limit=100
        )


async def test_a_failure_is_of_the_moment_at_which_it_is_recorded(rig: Rig) -> None:
    subscription, claim, now = await rig.subscribe("/a"), uuid4(), datetime.now(UTC)
    ids = [uuid4()]
    await claimed(rig, subscription, ids, claim)
    await Partitions(rig.database).ensure("attempt", [(now - HOUR).date()])

    await finish(rig, ids, claim, "failed", attempted_at=now - HOUR)

    assert await failures(rig, subscription, now - 2 * HOUR, now) == []
    [failure] = await failures(rig, subscription, now, datetime.now(UTC))
    assert failure.delivery_id == ids[0]
    assert now <= failure.failed_at <= datetime.now(UTC)


async def release(
    rig: Rig, subscription_id: UUID, *, after: UUID = BEGINNING, limit: int = 100
) -> ReleasedBatch:
    now = datetime.now(UTC)
    async with rig.database.transaction() as connection:
        return await recovery.release_held(
            connection,
            subscription_id,
            since=now - HOUR,
            until=now + HOUR,
            first_kept=now.date() - timedelta(days=1),
            after=after,
            limit=limit,
        )


async def waiting(rig: Rig, count: int) -> bool:
    """Whether so many sessions wait for another's lock."""
    waits = await rig.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return len(waits) == count


async def test_what_ends_while_it_is_released_waits_for_that_and_not_each_for_the_other(
    rig: Rig,
) -> None:
    subscription, claim = await rig.subscribe("/a"), uuid4()
    first, second, third = ids = [UUID(int=(1 << 100) + n) for n in range(3)]
    await claimed(rig, subscription, ids[::-1], claim)

    async with asyncio.TaskGroup() as group, rig.database.transaction() as holder:
        await holder.execute(
            text("SELECT 1 FROM delivery WHERE id = :id FOR UPDATE"), {"id": second}
        )
        releasing = group.create_task(release(rig, subscription))
        await eventually("the recovery waits", lambda: waiting(rig, 1))
        ending = group.create_task(
            finish(rig, [third, first], claim, "succeeded", attempted_at=datetime.now(UTC))
        )
        await eventually("both wait", lambda: waiting(rig, 2))

    assert releasing.result().released == 3
    assert ending.result() == {first, third}
    assert [row.state for row in await rig.deliveries(subscription)] == ["pending"]


async def test_a_batch_of_a_recovery_looks_at_a_bounded_number_of_held_deliveries(rig: Rig) -> None:
    """A subscription may have millions that were held at another time."""
    subscription = await rig.subscribe("/a")
    ids = [UUID(int=(1 << 100) + n) for n in range(5)]
    await claimed(rig, subscription, ids, uuid4())
    await rig.change(
        "UPDATE delivery SET held_at = held_at - interval '1 day' WHERE id <> :id", id=ids[3]
    )

    first = await release(rig, subscription, limit=3)
    second = await release(rig, subscription, after=ids[2], limit=3)
    third = await release(rig, subscription, after=ids[4], limit=3)

    assert first == ReleasedBatch(ids[2], 0)
    assert second == ReleasedBatch(ids[4], 1)
    assert third == ReleasedBatch(None, 0)
    states = [row.state for row in await rig.deliveries(subscription)]
    assert states == ["held", "held", "held", "pending", "held"]
