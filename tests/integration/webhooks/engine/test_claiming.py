"""Who is at a delivery, how many at a time, and that nobody else can record anything of it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from uuid_utils import uuid7

from services.webhook_dispatcher.engine.allocation import IN_FLIGHT, IN_FLIGHT_SLOW, Slots
from services.webhook_dispatcher.engine.claiming import Claimer
from services.webhook_dispatcher.engine.due_subscriptions import POLL_SECONDS, SWEEPING_SHARE
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome, Post
from services.webhook_dispatcher.repository import claims, deliveries, endpoints, recording
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.waiting import eventually


async def is_over(rig: Rig, subscription_id: UUID) -> bool:
    return not await rig.deliveries(subscription_id)


async def received(rig: Rig, path: str, count: int) -> bool:
    return len(rig.receiver.of(path)) == count


async def test_a_hanging_endpoint_has_sixteen_in_flight_over_all_processes_and_delays_nobody(
    rig: Rig,
) -> None:
    await rig.subscribe("/hang", tenant="t_1")
    await rig.subscribe("/well", tenant="t_2")
    rig.receiver.hanging.add("/hang")

    async with rig.engine() as publisher, rig.engine(), rig.engine():
        await publisher.publish([an_event(n) for n in range(100)])
        await eventually("sixteen hanging", lambda: received(rig, "/hang", IN_FLIGHT))
        await publisher.publish([an_event(n, tenant="t_2") for n in range(300)])
        await eventually("all others", lambda: received(rig, "/well", 300))
        assert rig.receiver.most_at_once["/hang"] == IN_FLIGHT
        assert await received(rig, "/hang", IN_FLIGHT)
        rig.receiver.hanging.clear()
        rig.receiver.let_go.set()
        await eventually("the rest", lambda: received(rig, "/hang", 100))
        await eventually("nothing left", lambda: nothing_left(rig))

    assert len(set(rig.receiver.ids_of("/hang"))) == 100
    assert rig.receiver.most_at_once["/well"] <= IN_FLIGHT


async def nothing_left(rig: Rig) -> bool:
    return not await rig.query("SELECT 1 FROM delivery")


async def test_a_slow_endpoint_has_two_in_flight_until_it_is_quick_again(rig: Rig) -> None:
    subscription = await rig.subscribe("/slow")
    await rig.change("UPDATE endpoint SET is_slow = true")
    rig.receiver.hanging.add("/slow")

    async with rig.engine() as publisher:
        await publisher.publish([an_event(n) for n in range(40)])
        await eventually("two", lambda: received(rig, "/slow", IN_FLIGHT_SLOW))
        in_flight = await rig.query("SELECT 1 FROM delivery WHERE claim IS NOT NULL")
        assert len(in_flight) == IN_FLIGHT_SLOW
        rig.receiver.hanging.clear()
        rig.receiver.let_go.set()
        await eventually("nothing left", lambda: is_over(rig, subscription))

    assert not (await rig.endpoint(subscription)).is_slow


class StallingPoster:
    """Is at its first post until it is let go."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.posts: list[Post] = []
        self.let_go = asyncio.Event()

    async def post(self, post: Post) -> Attempt:
        self.posts.append(post)
        if len(self.posts) == 1:
            await self.let_go.wait()
        return Attempt(
            outcome=AttemptOutcome.SUCCEEDED,
            attempted_at=self._rig.clock(),
            duration_ms=1,
            response_status=200,
            response_body=f"post {len(self.posts)}",
        )


async def test_who_has_lost_the_lease_records_nothing(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    poster = StallingPoster(rig)

    async with rig.engine(poster=poster) as publisher:
        await publisher.publish([an_event()])
        await eventually("the first post", lambda: posted(poster, 1))
        await rig.leases_end()
        await eventually("another claim", lambda: posted(poster, 2))
        await eventually("its end", lambda: is_over(rig, subscription))
        [before] = await rig.attempts(subscription)
        poster.let_go.set()

    [attempt] = await rig.attempts(subscription)
    assert attempt == before
    assert (attempt.number, attempt.response_body) == (1, "post 2")
    ids = {post.headers["webhook-id"] for post in poster.posts}
    assert len(ids) == 1


async def posted(poster: StallingPoster, count: int) -> bool:
    return len(poster.posts) == count


async def test_a_claim_that_others_make_at_the_same_moment_never_takes_a_delivery_twice(
    rig: Rig,
) -> None:
    subscriptions = [await rig.subscribe(f"/{n}") for n in range(4)]
    async with rig.engine(DeliverySettings(slots=1), post_seconds=1.0) as publisher:
        rig.receiver.hanging.add("/0")
        await publisher.publish([an_event(n) for n in range(30)])
        await eventually("recorded", lambda: recorded(rig, 30))
    now = rig.clock()

    async def claim() -> list[UUID]:
        async with claims.claiming(rig.database) as connection:
            counts = dict.fromkeys(subscriptions, 3)
            taken = await claims.take(
                connection,
                counts,
                dict.fromkeys(counts, claims.EVER),
                uuid4(),
                now=now,
                lease_seconds=30,
            )
        return [delivery.id for delivery in taken]

    taken = [one for batch in await asyncio.gather(*(claim() for _ in range(8))) for one in batch]

    assert len(taken) == len(set(taken)) > 0


async def recorded(rig: Rig, count: int) -> bool:
    return len(await rig.query("SELECT 1 FROM event")) == count


async def test_several_processes_deliver_each_once(rig: Rig) -> None:
    paths = [f"/{n}" for n in range(5)]
    for path in paths:
        await rig.subscribe(path)
    events = [an_event(n) for n in range(120)]

    async with AsyncExitStack() as opened:
        publishers = [await opened.enter_async_context(rig.engine()) for _ in range(3)]
        await asyncio.gather(
            *(publisher.publish(events[n::3]) for n, publisher in enumerate(publishers))
        )
        await eventually("all", lambda: nothing_left_of(rig, 120))

    for path in paths:
        assert sorted(rig.receiver.ids_of(path)) == sorted(event.event_id for event in events)
    positions: list[Any] = await rig.query("SELECT position FROM event ORDER BY position")
    assert [row.position for row in positions] == list(range(1, 121))


async def nothing_left_of(rig: Rig, events: int) -> bool:
    return await recorded(rig, events) and await nothing_left(rig)


async def test_what_became_due_before_what_was_taken_is_found_by_a_sweep(rig: Rig) -> None:
    """As by a process whose clock is behind: claims go on from where the last one ended."""
    subscription = await rig.subscribe("/hang")
    rig.receiver.hanging.add("/hang")

    async with rig.engine() as publisher:
        await publisher.publish([an_event(n) for n in range(40)])
        await eventually("sixteen hanging", lambda: received(rig, "/hang", IN_FLIGHT))
        await eventually("the others", lambda: due(rig, subscription, 40 - IN_FLIGHT))
        await rig.change(
            "UPDATE delivery SET due_at = due_at - interval '1 hour' WHERE id IN"
            " (SELECT id FROM delivery WHERE claim IS NULL LIMIT 2)"
        )
        rig.receiver.hanging.clear()
        rig.receiver.let_go.set()
        await eventually("nothing left", lambda: nothing_left(rig))

    assert len(set(rig.receiver.ids_of("/hang"))) == 40


async def due(rig: Rig, subscription_id: UUID, count: int) -> bool:
    unclaimed = [one for one in await rig.deliveries(subscription_id) if one.claim is None]
    return len(unclaimed) == count


async def test_a_sweep_that_waited_for_others_claims_is_not_the_last_for_long(rig: Rig) -> None:
    """Sweeps that take long are rare, ten times as long apart; but not those that had to wait."""
    await rig.subscribe("/a")
    await rig.change("UPDATE endpoint SET open_until = clock_timestamp() + interval '1 day'")
    waiting = arrival(1)
    await Partitions(rig.database).ensure("event", {waiting.day})
    await due_since(rig, waiting)
    claimer = Claimer(rig.database, Slots(256), DeliverySettings(), rig.clock)
    now = asyncio.get_running_loop().time

    async with asyncio.TaskGroup() as group, rig.others_claim() as others:
        group.create_task(claimer.claim())
        await eventually("a sweep that waits", rig.has_waiting_claim)
        # Charged for it, the next sweep would be 5 s away.
        await others.execute("SELECT pg_sleep(0.5)")
        began_at = now()
    ended_at = now()

    longest_pause = max(POLL_SECONDS, SWEEPING_SHARE * (ended_at - began_at))
    assert claimer.sweeps.next_at - ended_at <= longest_pause


async def test_claims_begin_where_they_are_told_to(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    await rig.change("UPDATE endpoint SET open_until = clock_timestamp() + interval '1 day'")
    async with rig.engine() as publisher:
        await publisher.publish([an_event(n) for n in range(4)])
        await eventually("all recorded", lambda: due(rig, subscription, 4))
    await rig.change("UPDATE endpoint SET open_until = NULL")
    await rig.change(
        "UPDATE delivery SET due_at = due_at - interval '1 hour' WHERE id IN (SELECT id FROM delivery LIMIT 3)"
    )
    now, claim = rig.clock(), uuid4()
    since = now - timedelta(minutes=30)

    async with claims.claiming(rig.database) as connection:
        found = await claims.due_subscriptions(connection, {subscription: since}, now, most_due=16)
        all_found = await claims.due_subscriptions(
            connection, {subscription: claims.EVER}, now, most_due=16
        )
        taken = await claims.take(
            *(connection, {subscription: 4}, {subscription: since}, claim),
            now=now,
            lease_seconds=30,
        )

    assert [one.due for one in found] == [1]
    assert [one.due for one in all_found] == [4]
    assert [one.due_at >= since for one in taken] == [True]


async def test_what_is_sent_again_is_the_probe_also_when_an_event_came_before_the_next_sweep(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/down")
    await rig.change("UPDATE endpoint SET open_until = clock_timestamp() + interval '10 minutes'")
    waiting, new = arrival(1), arrival(2)
    await Partitions(rig.database).ensure("event", {waiting.day, new.day})
    await due_since(rig, waiting)
    claimer = Claimer(rig.database, Slots(256), DeliverySettings(), rig.clock)
    assert await claimer.claim() == ([], False), "its circuit breaker is open"
    probe = UUID(bytes=uuid7().bytes)
    async with rig.database.transaction() as connection:
        await deliveries.add_again(connection, subscription, [(probe, waiting.day, waiting.id)])
        await deliveries.put_first(connection, subscription, probe)
        await endpoints.let_one_through(connection, subscription)

    claimer.active.note(subscription, await due_since(rig, new))
    took_ten_seconds = asyncio.get_running_loop().time() - 10
    claimer.sweeps.note(took_ten_seconds, None, anything_waits=True)
    claimer.sweeps.want()
    leased, _ = await claimer.claim()

    assert [one.delivery.id for one in leased] == [probe]


def arrival(number: int) -> recording.Arrival:
    arrived = recording.arrival_of(an_event(number))
    assert arrived is not None
    return arrived


async def due_since(rig: Rig, arrived: recording.Arrival) -> datetime:
    """Record the event; since when its delivery is due."""
    due_at = rig.clock()
    async with rig.database.transaction() as connection:
        await recording.record_batch(connection, [arrived], due_at)
    return due_at
