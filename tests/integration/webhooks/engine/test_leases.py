"""What was claimed and cannot be sent now: whose it is, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from services.webhook_dispatcher.engine import claiming
from services.webhook_dispatcher.engine.dispatcher import Dispatcher
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import POST_SECONDS, DeliverySettings
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.engine.upkeep import Upkeep
from services.webhook_dispatcher.ports import Attempt, Post
from services.webhook_dispatcher.repository import claims, recording
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import LEASE_SECONDS, Rig, an_event
from tests.support.waiting import eventually


async def record(rig: Rig) -> None:
    """An event with its deliveries, due now."""
    arrival = recording.arrival_of(an_event())
    assert arrival is not None
    await Partitions(rig.database).ensure("event", {arrival.day})
    async with rig.database.transaction() as connection:
        await recording.record_batch(connection, [arrival], rig.clock())


async def received(rig: Rig, path: str, count: int) -> bool:
    return len(rig.receiver.of(path)) == count


def upkeep(rig: Rig) -> Upkeep:
    partitions, settings = Partitions(rig.database), DeliverySettings()
    return Upkeep(
        rig.database,
        partitions,
        Unavailability(rig.database, partitions, settings, rig.clock, lambda: None),
        Retention(rig.database, partitions, settings),
        lambda: None,
    )


async def test_a_clock_that_is_ahead_ends_nobodys_lease(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    await record(rig)
    keeper = upkeep(rig)
    await rig.take(subscription)

    rig.clock.advance(minutes=10)
    freed_by_a_clock = await keeper.free_leases()
    await rig.leases_end()
    freed_by_the_database = await keeper.free_leases()

    assert (freed_by_a_clock, freed_by_the_database) == (0, 1)


async def test_a_lease_from_before_the_databases_clock_was_set_back_is_over(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    for _ in range(2):
        await record(rig)
        await rig.take(subscription)
    await rig.change(
        "UPDATE delivery SET lease_until = lease_until + interval '1 hour'"
        " WHERE id = (SELECT id FROM delivery ORDER BY id DESC LIMIT 1)"
    )

    freed = await upkeep(rig).free_leases()

    assert freed == 1
    assert [row.claim is None for row in await rig.deliveries(subscription)] == [False, True]


async def test_a_clock_that_is_behind_claims_for_as_long_as_others(rig: Rig) -> None:
    rig.clock.advance(minutes=-10)
    subscription = await rig.subscribe("/a")
    await record(rig)
    [before] = await rig.query("SELECT clock_timestamp() AS at")
    await rig.take(subscription)

    [lease] = await rig.query(
        "SELECT lease_until AS until, clock_timestamp() AS at FROM delivery WHERE claim IS NOT NULL"
    )

    seconds = timedelta(seconds=30)
    assert before.at + seconds <= lease.until <= lease.at + seconds


async def test_a_delivery_whose_event_is_not_seen_yet_is_sent_once_it_is(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")

    async with rig.engine():
        kept_no_longer = await add_delivery(rig, subscription, days_ago=31)
        not_seen = await add_delivery(rig, subscription, days_ago=0)
        rig.wake()
        await eventually("one is dropped", lambda: left(rig, subscription, [not_seen]))
        rig.wake()
        await rig.change(
            "INSERT INTO event (day, id, position, tenant, customer_id, type, resource_id, sequence, body, recorded_at)"
            " SELECT event_day, event_id, 1, tenant, 'c_1', event_type, 'p_1', 1, '{}', created_at"
            " FROM delivery WHERE id = :id",
            id=not_seen,
        )
        await eventually("the other is sent", lambda: left(rig, subscription, []))

    assert kept_no_longer != not_seen
    assert len(rig.receiver.of("/a")) == 1


async def add_delivery(rig: Rig, subscription_id: UUID, *, days_ago: int) -> UUID:
    """Of an event that is not there."""
    delivery_id = uuid4()
    await rig.change(
        "INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, due_at, created_at)"
        " SELECT :id, s.id, s.tenant, CAST(:now AS timestamptz)::date - CAST(:days AS integer), gen_random_uuid(),"
        " 'person.updated', 'pending', :now, :now FROM subscription s WHERE s.id = :subscription",
        id=delivery_id,
        subscription=subscription_id,
        days=days_ago,
        now=rig.clock(),
    )
    return delivery_id


async def left(rig: Rig, subscription_id: UUID, deliveries: list[UUID]) -> bool:
    return [row.id for row in await rig.deliveries(subscription_id)] == deliveries


class NoPoster:
    async def post(self, post: Post) -> Attempt:
        raise AssertionError("nothing is begun any more")


async def test_a_claim_that_is_under_way_as_the_process_stops_is_waited_for_and_given_back(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/a")
    await record(rig)
    dispatcher = Dispatcher(
        rig.database,
        NoPoster(),
        Signer(rig.keyring),
        DeliverySettings(),
        rig.clock,
        lambda sent: None,
    )

    async with rig.others_claim():
        running = asyncio.create_task(dispatcher.run())
        await eventually("a claim that waits", rig.has_waiting_claim)
        stopping = asyncio.create_task(dispatcher.stop(20))
        await rig.query("SELECT 1")
        was_waited_for = not stopping.done()
    await stopping
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert was_waited_for
    [delivery] = await rig.deliveries(subscription)
    assert delivery.claim is None


async def test_what_was_claimed_too_late_to_end_within_its_lease_is_given_back_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await rig.subscribe("/a")
    given_back: list[UUID] = []
    give_back = claims.give_back

    async def give_back_once(
        connection: asyncpg.Connection, ids: Sequence[UUID], claim: UUID
    ) -> None:
        # The next claim has enough time on a slow machine, too.
        monkeypatch.setattr(claiming, "POST_SECONDS", POST_SECONDS)
        given_back.extend(ids)
        await give_back(connection, ids, claim)

    monkeypatch.setattr(claiming, "POST_SECONDS", LEASE_SECONDS - 0.5)
    monkeypatch.setattr(claims, "give_back", give_back_once)

    async with rig.engine():
        async with rig.others_claim() as others:
            await record(rig)
            [delivery] = await rig.deliveries(subscription)
            await eventually("a claim that waits", rig.has_waiting_claim)
            await others.execute("SELECT pg_sleep(0.6)")  # too late
        await eventually("a delivery", lambda: received(rig, "/a", 1), seconds=10)
        await eventually("it is over", lambda: left(rig, subscription, []))

    assert given_back == [delivery.id]
