"""Every event reaches every subscription that it matches, once, signed, and nobody else."""

from __future__ import annotations

import time
from uuid import UUID

import aio_pika

from libs.contracts.events import Event
from libs.messaging.queue_depths import ready_messages
from libs.messaging.topology import dead_queues
from libs.signing.webhook import key_of, verify
from services.webhook_dispatcher.engine.rules import DeliverySettings
from tests.integration.webhooks.engine.receiver import Received
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.waiting import eventually


def check_signature(rig: Rig, subscription_id: UUID, received: Received) -> None:
    verify(
        key_of(rig.secrets[subscription_id]),
        message_id=received.headers["webhook-id"],
        timestamp=received.headers["webhook-timestamp"],
        signatures=received.headers["webhook-signature"],
        body=received.body,
        now=time.time(),
    )


async def test_an_event_is_delivered_as_the_bytes_that_were_published_and_signed(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    event = an_event()

    async with rig.engine() as publisher:
        await publisher.publish([event])
        [received] = await eventually("a delivery", lambda: seen(rig, "/a", 1))
        await eventually("no delivery left", lambda: is_over(rig, subscription))

    assert received.body == event.body
    assert received.headers["content-type"] == "application/json"
    assert received.event_id == event.event_id
    check_signature(rig, subscription, received)
    [attempt] = await rig.attempts(subscription)
    assert (attempt.concluded, attempt.number, attempt.response_status) == ("succeeded", 1, 200)
    [row] = await rig.query("SELECT * FROM event")
    assert (row.body, row.position, row.type) == (event.body, 1, "person.updated")


async def seen(rig: Rig, path: str, count: int) -> list[Received]:
    found = rig.receiver.of(path)
    assert len(found) == count
    return found


async def is_over(rig: Rig, subscription_id: UUID) -> bool:
    return not await rig.deliveries(subscription_id)


async def test_an_event_that_is_published_twice_is_delivered_once(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    events = [an_event(n) for n in range(20)]

    async with rig.engine() as publisher:
        await publisher.publish([*events, *events])
        await eventually("all", lambda: seen(rig, "/a", 20))
        await publisher.publish([*events[:5], last := an_event(99)])
        await eventually("the last", lambda: seen(rig, "/a", 21))
        await eventually("no delivery left", lambda: is_over(rig, subscription))

    assert sorted(rig.receiver.ids_of("/a")) == sorted(e.event_id for e in [*events, last])
    positions = await rig.query("SELECT position, sequence FROM event ORDER BY position")
    assert [row.position for row in positions] == list(range(1, 22))
    assert [row.sequence for row in positions] == [*range(20), 99]


async def test_each_subscription_gets_what_it_subscribed_to_and_nothing_of_others(rig: Rig) -> None:
    event = an_event(tenant="t_1", customer_id="c_1")
    getting = {
        "/own-type": {"event_type": "person.updated"},
        "/own-kind": {"event_type": "person"},
        "/own-all": {"event_type": "*"},
        "/partner": {"event_type": "*", "customer_id": None},
    }
    not_getting = {
        "/other-type": {"event_type": "person.created"},
        "/other-kind": {"event_type": "customer"},
        "/other-customer": {"event_type": "*", "customer_id": "c_2"},
        "/other-tenant": {"event_type": "*", "tenant": "t_2"},
        "/other-partner": {"event_type": "*", "tenant": "t_2", "customer_id": None},
        "/deleted": {"event_type": "*", "status": "deleted"},
        "/disabled": {"event_type": "*", "status": "disabled"},
        "/unavailable": {"event_type": "*", "status": "unavailable"},
    }
    ids = {
        path: await rig.subscribe(path, **options)  # type: ignore[arg-type]
        for path, options in (getting | not_getting).items()
    }

    async with rig.engine() as publisher:
        await publisher.publish([event])
        for path in getting:
            await eventually(path, lambda path=path: seen(rig, path, 1))  # type: ignore[misc]
            await eventually(path, lambda path=path: is_over(rig, ids[path]))  # type: ignore[misc]

    assert {received.path for received in rig.receiver.received} == set(getting)
    held = await rig.query("SELECT subscription_id, state FROM delivery")
    assert {(row.subscription_id, row.state) for row in held} == {
        (ids["/disabled"], "held"),
        (ids["/unavailable"], "held"),
    }


async def test_what_fails_at_one_subscription_is_not_sent_again_to_the_others(rig: Rig) -> None:
    paths = [f"/{n}" for n in range(10)]
    ids = {path: await rig.subscribe(path) for path in paths}
    rig.receiver.statuses["/3"] = 500
    events = [an_event(n) for n in range(30)]

    # The second attempts wait for `later`, however long the first ones take.
    hourly = DeliverySettings(retry_seconds=(3600.0, 3600.0))
    async with rig.engine(hourly) as publisher:
        await publisher.publish(events)
        await eventually("first attempts", lambda: all_seen(rig, paths, 30))
        rig.later(hours=1)
        await eventually("second attempts", lambda: seen(rig, "/3", 60))
        await eventually("failures recorded", lambda: all_made(rig, ids["/3"], 2))

    for path in paths:
        if path != "/3":
            assert sorted(rig.receiver.ids_of(path)) == sorted(e.event_id for e in events)


async def all_seen(rig: Rig, paths: list[str], count: int) -> bool:
    return all(len(rig.receiver.of(path)) == count for path in paths)


async def all_made(rig: Rig, subscription_id: UUID, attempts: int) -> bool:
    return all(row.attempts_made == attempts for row in await rig.deliveries(subscription_id))


async def test_what_cannot_be_understood_reaches_the_dead_queue_and_holds_up_nothing(
    rig: Rig,
) -> None:
    await rig.subscribe("/a")
    good = [an_event(n) for n in range(2)]
    nonsense = Event("evt_nonsense", "person.updated", "t_1", "c_1", "p_1", 1, b"{}")
    ancient = Event(
        "evt_01800000-0000-7000-8000-000000000000", "person.updated", "t_1", "c_1", "p_1", 1, b"{}"
    )
    nameless = Event(good[0].event_id, "Person!", "t_1", "c_1", "p_1", 1, b"{}")

    async with rig.engine() as publisher:
        await publisher.publish([good[0], nonsense, ancient, nameless, good[1]])
        await eventually("the good ones", lambda: seen(rig, "/a", 2))
        await eventually("the dead ones", lambda: dead_letters(rig, 3))

    assert sorted(rig.receiver.ids_of("/a")) == sorted(event.event_id for event in good)


async def dead_letters(rig: Rig, count: int) -> bool:
    [queue] = [name for name in dead_queues() if name.startswith("webhook_dispatcher.events")]
    async with await aio_pika.connect(rig.amqp_url) as connection, connection.channel() as channel:
        return await ready_messages(channel, queue) == count
