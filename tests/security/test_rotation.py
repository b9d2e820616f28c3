"""Every key of the services that seal is replaced under load: no request fails, and the old keys are not needed after.

Of each service one process at a time is restarted: the gateway's by SIGHUP, onboarding's beside a second one, the
others with a gap.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from deploy.local.services import SERVICES, settings_of
from libs.secret_sources import file_variable
from tests.e2e.wires.hands import new_sender
from tests.support.api import Answer
from tests.support.infrastructure import Environment
from tests.support.launching import forked
from tests.support.live import ACCOUNTS, CUSTOMERS, Deployment, Live, hands_on
from tests.support.pace import waiting_pace
from tests.support.people import APPROVED, application, new_key, new_tin
from tests.support.ports import free_ports
from tests.support.receivers import receiver
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import ServiceProcess, Stack
from tests.support.subscribers import subscribed
from tests.support.waiting import eventually
from tests.unit.persistence.keys import a_key

SEALING = ("gateway", "onboarding", "webhook_dispatcher")
"""The services that store what is sealed."""
NEEDED = [service for service in SERVICES if service.name != "reconciliation"]
OF_ONE_PROCESS = ("ledger_read", "payments", "webhook_dispatcher")
TWO_PROCESSES = {
    "BANKSIDE_GATEWAY_PROCESSES": "2",
    # Most connections that are kept carry a request within it; one that does not may be closed as one is sent.
    "BANKSIDE_GATEWAY_DRAIN_SECONDS": str(waiting_pace()),
}
KEPT_FOR_A_DAY = "BANKSIDE_GATEWAY_LOOKUP_KEYS"
SUBSCRIPTIONS = "/partner/reseller/webhooks/subscriptions"
UNLIMITED = ("--writes-per-minute", "1000000", "--reads-per-minute", "1000000")
DRAINS = 6
"""Each of the gateway's processes drains three times."""
PAUSE_SECONDS = 1.2
"""Between two requests of a caller: the load is to meet each restart, not to fill the machine."""
REPLACED_SECONDS = 60.0


class Rings:
    """The rings of a stack, as files that every service reads at its start."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._folder = folder
        self._old = {name: ring for name, ring in stack.env.items() if name.endswith("_KEYS")}
        # Two services that share a ring still share one.
        self._new = {ring: f"new:{a_key()}" for ring in self._old.values()}
        folder.mkdir(mode=0o700)
        for name in self._old:
            del stack.env[name]
            stack.env[file_variable(name)] = str(folder / name)
        self.write("{old}")

    def write(self, form: str) -> None:
        for name, old in self._old.items():
            kept = "{new},{old}" if name == KEPT_FOR_A_DAY and form == "{new}" else form
            ring = kept.format(old=old, new=self._new[old])
            (self._folder / name).write_text(ring)


class Fleet:
    """The processes of a stack, with a second one of onboarding."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        [admin_port] = free_ports(1)
        onboarding = stack.services["onboarding"]
        settings = onboarding.settings | {"BANKSIDE_ONBOARDING_ADMIN_PORT": str(admin_port)}
        self.second = ServiceProcess(onboarding.module, settings, folder / "second.log", forked)
        self.stack = stack

    async def restart(self) -> None:
        """Of each service one process at a time, services side by side."""
        services = self.stack.services
        gateway = services["gateway"]
        replaced = gateway.log.count("children_replaced")
        os.kill(gateway.pid, signal.SIGHUP)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._restart(services["onboarding"], self.second))
            for name in OF_ONE_PROCESS:
                group.create_task(self._restart(services[name]))

        async def is_replaced() -> bool:
            return gateway.log.count("children_replaced") > replaced

        await eventually("the gateway's processes are replaced", is_replaced, REPLACED_SECONDS)

    async def _restart(self, *processes: ServiceProcess) -> None:
        for process in processes:
            await process.stop()
            await process.start()


@asynccontextmanager
async def running_fleet(
    environment: Environment, folder: Path
) -> AsyncIterator[tuple[Fleet, Rings]]:
    stack = Stack(environment, folder, NEEDED, forked, **TWO_PROCESSES)
    rings = Rings(stack, folder / "rings")
    for service in NEEDED:
        stack.services[service.name].settings = settings_of(service, stack.env)
    fleet = Fleet(stack, folder)
    try:
        await stack.start()
        await fleet.second.start()
        yield fleet, rings
    finally:
        if fleet.second.is_running:
            await fleet.second.stop()
        await stack.stop()


async def reseal(stack: Stack, service: str) -> tuple[int, Any]:
    done = await stack.run("keys", "reseal", service, "--reason", "a key goes", "--json")
    assert done.out, done.err
    return done.status, json.loads(done.out)


async def needs_no_old_key(stack: Stack, service: str) -> bool:
    """What a request has locked is passed over: the operator runs it again."""
    return (await reseal(stack, service))[0] == 0


class Business:
    """A customer with an external account, a subscription, and answers that can be repeated."""

    def __init__(self, live: Live) -> None:
        self.api = live.partner
        self.application, self.key = application(), new_key()
        self.rotation = new_key()

    async def begin(self) -> None:
        onboarded = await self.api.post(CUSTOMERS, self.application, self.key)
        self.onboarded = onboarded.data
        self.person = f"{CUSTOMERS}/person/{self.onboarded['persons'][0]['customer_id']}"
        self.account = f"{ACCOUNTS}/external/{self.onboarded['business']['account_id']}"
        made = await self.api.post(
            SUBSCRIPTIONS, {"event_types": "statement", "callback_url": "http://127.0.0.1:9/hook"}
        )
        self.subscription = f"{SUBSCRIPTIONS}/{made.data['subscription_id']}"
        self.secret = (await self._rotate()).data["secret"]

    async def _rotate(self) -> Answer:
        return await self.api.post(f"{self.subscription}/secret/rotate", None, self.rotation)

    async def is_as_it_was(self) -> None:
        """Reads what is sealed at rest and on its way, changes it, and repeats earlier requests."""
        onboarded = await self.api.post(CUSTOMERS, self.application, self.key)
        repeated = await self._rotate()
        secret = await self.api.get(f"{self.subscription}/secret")
        account = await self.api.get(self.account)
        changed = await self.api.patch(self.person, {"tin": new_tin(APPROVED)}, new_key())
        taken = await self.api.post(
            CUSTOMERS, application(business=self.application["business"]), new_key()
        )

        assert (onboarded.is_replayed, onboarded.data) == (True, self.onboarded)
        assert (repeated.is_replayed, repeated.data["secret"]) == (True, self.secret)
        assert secret.data["secret"] == self.secret
        number = self.application["external_bank_account"]["account_number"]
        assert account.data["external_account_number"] == number
        assert changed.status == 200, changed.body
        assert (taken.status, taken.code) == (409, "already_exists")


class Load:
    """Callers, each of whom sends one request after the other. An answer that is not right fails the test."""

    def __init__(self, *callers: Callable[[], Awaitable[object]]) -> None:
        self._callers = callers
        self.answered = Counter[int]()
        self.cut_off = 0
        """Requests without an answer, which their callers send again."""
        self._is_on = True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for number, caller in enumerate(self._callers):
                group.create_task(self._send_on(number, caller))
            try:
                yield
            finally:
                self._is_on = False

    async def _send_on(self, number: int, caller: Callable[[], Awaitable[object]]) -> None:
        while self._is_on:
            try:
                await caller()
            except aiohttp.ServerDisconnectedError:
                # The connection was kept and idle for all of the drain, and was closed as the request was sent.
                self.cut_off += 1
                continue
            self.answered[number] += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def goes_on(self) -> None:
        """Return when each caller was answered twice: one request was sent after this."""
        before = self.answered.copy()

        async def all_answered() -> bool:
            return all(
                self.answered[number] >= before[number] + 2 for number in range(len(self._callers))
            )

        await eventually("every caller is answered", all_answered)


async def test_every_key_is_replaced_under_load_and_no_request_fails(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    async with running_fleet(fresh_environment, tmp_path) as (fleet, rings):
        stack = fleet.stack
        deployment = Deployment(stack, RecordedEvents(fresh_environment.amqp_url))
        deployment.keys["anvil"] = await deployment.key("anvil", *UNLIMITED)
        async with hands_on(deployment) as live, receiver() as endpoint:
            business = Business(live)
            await business.begin()
            sender = await new_sender(live, "1000000.00")
            sent: list[str] = []

            async def read() -> None:
                for target in (CUSTOMERS, f"{ACCOUNTS}/balance/{sender.account_id}"):
                    answer = await live.partner.get(target)
                    assert answer.status == 200, answer.body

            async def onboard() -> None:
                await live.onboarded()

            async def send_wire() -> None:
                sent.append((await sender.send()).data["transaction_id"])

            load = Load(business.is_as_it_was, read, onboard, send_wire)
            async with subscribed(live.partner, endpoint, "wire") as subscriber:
                async with load.running():
                    for form in ("{old},{new}", "{new},{old}"):
                        rings.write(form)
                        await fleet.restart()
                        await load.goes_on()
                    for service in SEALING:
                        await eventually(
                            f"{service} needs no old key", partial(needs_no_old_key, stack, service)
                        )
                    rings.write("{new}")
                    await fleet.restart()
                    await load.goes_on()
                    after = [await reseal(stack, service) for service in SEALING]

                async def all_delivered() -> bool:
                    told = [subscriber.verified(request) for request in subscriber.requests]
                    done = {
                        e["data"]["transaction_id"] for e in told if e["type"] == "wire.completed"
                    }
                    return done >= {*sent}

                await eventually("each wire is completed, and told", all_delivered)

    assert [status for status, _ in after] == [0, 0, 0]
    assert all(keys == {} for _, done in after for keys in done["old_keys"].values())
    assert not any(done["unopened"] for _, done in after)
    assert load.cut_off <= DRAINS
