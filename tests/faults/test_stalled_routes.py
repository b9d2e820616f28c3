"""Routes to PostgreSQL and RabbitMQ that stall without FIN or RST, under load: nothing is lost or doubled.

`make test` has all of it for every service, under one load. `make recovery` has one fault at a time, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
import pytest_asyncio

from deploy.local.ports import LOOPBACK
from deploy.local.services import ROLES
from libs.runtime.probes import http_ready
from tests.faults.load import Load, new_load, waits
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.live import Deployment, Live, hands_on
from tests.support.recorded_events import RecordedEvents
from tests.support.routes import Direction, Route, route_to
from tests.support.stack import running_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVICES = tuple(role for role in ROLES if role != "provider_sandbox")
NEAR_CALLERS = ("gateway", "ledger_read", "webhook_dispatcher")
NEAR_THE_BANK = tuple(service for service in SERVICES if service not in NEAR_CALLERS)
"""Two halves, to which different things happen at the same time: each command needs services of both."""
SERVERS = ("database", "broker")
BACK_SECONDS = 30.0
"""From the moment when new connections pass until everything is carried out as before."""
KEEPALIVE_SECONDS = {"database": 11.0, "broker": None}
"""When the server notices that its peer has vanished: see `libs.persistence.keepalive`. RabbitMQ has heartbeats."""
NOTICED_SECONDS = 30.0
"""From the stall until the service that cannot work says so: longer than a heartbeat of the broker."""


@dataclass(frozen=True)
class Routed:
    """A stack, each of whose services has a route of its own to PostgreSQL and to RabbitMQ."""

    live: Live
    routes: Mapping[tuple[str, str], Route] = field(repr=False)
    """By service and server."""

    def to(self, server: str) -> list[Route]:
        """Those of all services."""
        return [self.routes[service, server] for service in SERVICES]

    async def is_ready(self, service: str) -> bool:
        """Whether it says so within the time that a supervisor gives it."""
        try:
            return await http_ready(LOOPBACK, self.live.stack.services[service].admin_port)()
        except TimeoutError:
            return False

    async def all_say_not_ready(self, *services: str) -> None:
        """Return when each of these services has said that it is not ready."""

        async def is_not_ready(service: str) -> bool:
            return not await self.is_ready(service)

        async with asyncio.TaskGroup() as group:
            for service in services:
                group.create_task(
                    eventually(
                        f"{service} says that it is not ready",
                        partial(is_not_ready, service),
                        NOTICED_SECONDS,
                    )
                )


@pytest.fixture(scope="module")
def routed_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def routed_stack(
    routed_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Routed]:
    environment = routed_environment
    events = RecordedEvents(environment.amqp_url)
    await events.begin()
    async with AsyncExitStack() as opened:
        routes = {}
        settings = waits()
        for service in SERVICES:
            for server, url in (
                ("database", environment.database_urls[service]),
                ("broker", environment.amqp_urls[service]),
            ):
                route = await opened.enter_async_context(route_to(url))
                routes[service, server] = route
                name = "DATABASE_URL" if server == "database" else "AMQP_URL"
                settings[f"BANKSIDE_{ROLES[service]}_{name}"] = route.url
        folder = tmp_path_factory.mktemp("routed")
        stack = await opened.enter_async_context(running_stack(environment, folder, **settings))
        live = await opened.enter_async_context(hands_on(Deployment(stack, events)))
        yield Routed(live, routes)


@pytest_asyncio.fixture(loop_scope="module")
async def routed(routed_stack: Routed) -> AsyncIterator[Routed]:
    """The stack with routes that pass; a service that a test leaves unable to work is started anew."""
    yield routed_stack
    for route in routed_stack.routes.values():
        route.cut()
    for service in SERVICES:
        try:
            await eventually(f"{service} is ready", partial(routed_stack.is_ready, service))
        except AssertionError:
            await routed_stack.live.stack.kill(service)
            await routed_stack.live.stack.restart(service)


@asynccontextmanager
async def loaded(routed: Routed, tenant: str) -> AsyncIterator[Load]:
    """A load that is under way in the block; afterwards all agree."""
    async with new_load(routed.live, tenant) as load:
        async with load.running():
            await load.is_on()
            yield load
        await load.finish()
        await load.agrees()


@asynccontextmanager
async def disturbed(routed: Routed, load: Load, how: str | None = None) -> AsyncIterator[None]:
    """Commands of each kind are under way as the block begins; afterwards everything is carried out again.

    The block ends when new connections pass again. What is raised has `how` as a note.
    """
    try:
        await load.in_flight()
        yield
        passing = time.monotonic()
        await load.is_on(seconds=BACK_SECONDS)
        for service in SERVICES:
            left = BACK_SECONDS - (time.monotonic() - passing)
            await eventually(f"{service} is ready", partial(routed.is_ready, service), max(0, left))
    except Exception as error:
        if how is not None:
            error.add_note(how)
        raise


async def test_routes_of_all_services_that_stall_and_vanish_lose_and_double_nothing(
    routed: Routed,
) -> None:
    async with loaded(routed, "stalled") as load:
        for server, vanishing, stalling in (
            ("database", NEAR_CALLERS, NEAR_THE_BANK),
            ("broker", NEAR_THE_BANK, NEAR_CALLERS),
        ):
            async with disturbed(routed, load, f"routes to the {server} stall and vanish"):
                for service in vanishing:
                    routed.routes[service, server].renew(KEEPALIVE_SECONDS[server])
                for service in stalling:
                    routed.routes[service, server].stall()
                await routed.all_say_not_ready(*stalling)
                for service in stalling:
                    routed.routes[service, server].renew(KEEPALIVE_SECONDS[server])
            async with disturbed(routed, load, f"routes to the {server} stall one way"):
                for service in SERVICES:
                    from_server = server == "database" or service in NEAR_CALLERS
                    direction = Direction.FROM_SERVER if from_server else Direction.TO_SERVER
                    routed.routes[service, server].stall(frozenset({direction}))
                await routed.all_say_not_ready(*SERVICES)
                for route in routed.to(server):
                    route.resume()


@pytest.mark.recovery
@pytest.mark.parametrize(
    ("service", "server"),
    [
        ("payments", "database"),
        ("onboarding", "database"),
        ("gateway", "database"),
        ("payments", "broker"),
        ("gateway", "broker"),
        ("webhook_dispatcher", "broker"),
    ],
)
async def test_a_service_with_a_stalled_route_says_so_and_is_back_on_a_new_one(
    routed: Routed, service: str, server: str
) -> None:
    route = routed.routes[service, server]

    async with loaded(routed, f"{service}-{server}") as load, disturbed(routed, load):
        route.stall()
        await routed.all_say_not_ready(service)
        route.renew(KEEPALIVE_SECONDS[server])


@pytest.mark.recovery
@pytest.mark.parametrize("server", SERVERS)
async def test_connections_of_all_services_whose_peer_vanished_are_replaced(
    routed: Routed, server: str
) -> None:
    async with loaded(routed, f"vanished-{server}") as load, disturbed(routed, load):
        for route in routed.to(server):
            route.renew(KEEPALIVE_SECONDS[server])


@pytest.mark.recovery
@pytest.mark.parametrize(
    ("direction", "server"),
    [("from_server", "database"), ("from_server", "broker"), ("to_server", "broker")],
)
async def test_what_is_stalled_in_one_direction_and_arrives_late_does_no_harm(
    routed: Routed, direction: str, server: str
) -> None:
    async with loaded(routed, f"{direction}-{server}") as load, disturbed(routed, load):
        for route in routed.to(server):
            route.stall(frozenset({Direction(direction)}))
        await routed.all_say_not_ready(*SERVICES)
        for route in routed.to(server):
            route.resume()
