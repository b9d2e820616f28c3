"""The engine goes on by itself after an outage, in the same process."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.events import Event
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.event_publisher import EventPublisher
from libs.persistence.engine import open_database
from tests.integration.webhooks.engine.receiver import receiving
from tests.integration.webhooks.engine.rig import SERVICE, Rig, an_event
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of
from tests.support.own_servers import own_postgres
from tests.support.routes import route_to
from tests.support.waiting import eventually


async def is_over(rig: Rig, subscription_id: UUID) -> bool:
    return not await rig.deliveries(subscription_id)


async def got(rig: Rig, path: str, count: int) -> bool:
    return len(set(rig.receiver.ids_of(path))) >= count


async def test_what_is_published_while_the_database_is_away_is_delivered_when_it_is_back(
    fresh_environment: Environment,
) -> None:
    secrets = fresh_environment.secrets
    async with own_postgres(fresh_environment) as postgres, receiving() as receiver:
        database = open_database(postgres.database_urls[SERVICE], SERVICE, pool_size=30)
        rig = Rig(database, fresh_environment, storage_of(secrets, SERVICE), receiver)
        subscription = await rig.subscribe("/a")
        events = [an_event(n) for n in range(600)]

        async with rig.engine() as publisher:
            await publisher.publish(events[:200])
            await eventually("some", lambda: got(rig, "/a", 50))
            postgres.kill()
            await publisher.publish(events[200:])
            await eventually("all of them", lambda: got(rig, "/a", 600), seconds=60)
            await rig.leases_end()  # that were taken as the server died
            await eventually("nothing left", lambda: is_over(rig, subscription), seconds=60)
        await database.close()

    assert set(receiver.ids_of("/a")) == {event.event_id for event in events}


async def test_what_was_taken_when_the_connection_to_the_broker_was_cut_is_delivered_once(
    rig: Rig,
) -> None:
    """A broker that dies is in tests/faults/test_servers.py."""
    subscription = await rig.subscribe("/a")
    events = [an_event(n) for n in range(400)]

    async with route_to(rig.amqp_url) as route:
        rig.environment = rig.environment.with_urls(amqp_url=route.url)
        async with rig.engine() as publisher:
            await publisher.publish(events[:200])
            route.cut()
            some_again = [*events[:20], *events[200:]]
            await eventually("it is back", lambda: published(publisher, some_again), seconds=60)
            await eventually("all of them", lambda: got(rig, "/a", 400), seconds=60)
            await eventually("nothing left", lambda: is_over(rig, subscription))

    assert sorted(rig.receiver.ids_of("/a")) == sorted(event.event_id for event in events)


async def published(publisher: EventPublisher, events: list[Event]) -> bool:
    done = False
    try:
        await publisher.publish(events)
        done = True
    except* BROKER_ERRORS:
        pass  # it is tried again
    return done
