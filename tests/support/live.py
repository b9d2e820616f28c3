"""A running stack as the tests of its behaviour use it: keys, signed callers, the bank, the events."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from deploy.local.banks import SANDBOX, has_fake
from tests.support.api import Answer, Api, Interface, Key, public_interface
from tests.support.bank import Bank
from tests.support.bank_at_increase import BankAtIncrease
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.launching import begin_loading
from tests.support.pace import waiting_pace
from tests.support.people import application, new_key
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import BANK, Stack, running_stack
from tests.support.waiting import eventually

CUSTOMERS = "/partner/reseller/customers"
ACCOUNTS = "/partner/reseller/accounts"
EVENTS_POLL_SECONDS = 0.1
"""A fetch of the events takes several requests to the broker."""
ONBOARDED = Counter(
    {
        "customer.created": 1,
        "customer.approved": 1,
        "person.created": 2,
        "person.updated": 2,
        "external_account.created": 1,
        "account.opened": 1,
    }
)
"""The events of an onboarding of two persons that is approved at once."""

NONE: Counter[str] = Counter()
"""No events."""


def short_waits() -> dict[str, str]:
    """Settings with which a caller is told `outcome_pending` after 3 s rather than 22, on a quiet machine."""
    slower = waiting_pace()
    return {
        "BANKSIDE_GATEWAY_DEADLINE_SECONDS": str(6 * slower),
        "BANKSIDE_PROVIDER_TIMEOUT_SECONDS": str(1 * slower),
    }


def short_transit(bank: str) -> dict[str, str]:
    """At Increase a change takes no key, and a refusal is not kept under one: after a failure a change is sent again,
    and a refusal counts, once none can be on its way any more.
    """
    if bank == SANDBOX:
        return {}
    seconds = str(3 * waiting_pace())
    return {
        "BANKSIDE_ONBOARDING_PROVIDER_TRANSIT_SECONDS": seconds,
        "BANKSIDE_PAYMENTS_PROVIDER_TRANSIT_SECONDS": seconds,
    }


@dataclass
class Deployment:
    """What outlives a test: the processes, the keys made so far, the events seen so far."""

    stack: Stack
    events: RecordedEvents
    keys: dict[str, Key] = field(default_factory=dict)
    interface: Interface = field(default_factory=public_interface)

    def logs(self) -> str:
        """The end of each."""
        return "\n".join(self.stack.log(name)[-3000:] for name in self.stack.services)

    async def key(self, tenant: str, *more: str) -> Key:
        name = " ".join((tenant, *more))
        if name not in self.keys:
            self.keys[name] = await self.stack.new_key("partner", "--tenant", tenant, *more)
        return self.keys[name]

    async def customer_key(self, customer_id: str, *more: str) -> Key:
        """`more` is what the key is made with, the first time that it is asked for."""
        if customer_id not in self.keys:
            made = await self.stack.new_key("customer", "--customer", customer_id, *more)
            self.keys[customer_id] = made
        return self.keys[customer_id]


@dataclass
class Live:
    """One test's hands on a deployment."""

    deployment: Deployment
    session: aiohttp.ClientSession
    interface: Interface
    partner: Api
    bank: Bank

    @property
    def stack(self) -> Stack:
        return self.deployment.stack

    @property
    def events(self) -> RecordedEvents:
        return self.deployment.events

    @property
    def deadline_seconds(self) -> float:
        """The gateway's: within it, every caller is answered."""
        return float(self.stack.env["BANKSIDE_GATEWAY_DEADLINE_SECONDS"])

    def beyond_timeout(self, factor: float = 1.3) -> dict[str, int]:
        """The latency of a provider for which services wait no longer: so many times their timeout."""
        timeout_seconds = float(self.stack.env["BANKSIDE_PROVIDER_TIMEOUT_SECONDS"])
        return {"milliseconds": int(1000 * factor * timeout_seconds)}

    def api(self, key: Key | None) -> Api:
        logs = self.deployment.logs
        return Api(self.session, self.stack.base_url, self.interface, key, logs)

    async def of_tenant(self, tenant: str, *more: str) -> Api:
        return self.api(await self.deployment.key(tenant, *more))

    async def of_customer(self, customer_id: str, *more: str) -> Api:
        return self.api(await self.deployment.customer_key(customer_id, *more))

    async def onboarded(self, body: Any = None, api: Api | None = None) -> Any:
        """The data of an onboarding that succeeds at once."""
        answer = await (api or self.partner).post(CUSTOMERS, body or application())
        data = answer.data
        assert data["status"] == "approved"
        return data

    async def customer(self, customer_id: str, api: Api | None = None) -> Any:
        return (await (api or self.partner).get(f"{CUSTOMERS}/{customer_id}")).data

    async def final(
        self,
        method: str,
        target: str,
        body: Any,
        key: str,
        seconds: float = 30,
        api: Api | None = None,
    ) -> Answer:
        """The answer under this Idempotency-Key once it is final. `outcome_pending` and the like are not, nor is that
        it was asked for too often.
        """

        async def asked() -> Answer | None:
            answer = await (api or self.partner).call(method, target, body, idempotency_key=key)
            codes = {"idempotency_in_progress", "rate_limited"}
            unfinished = answer.status >= 500 or answer.code in codes
            return None if unfinished else answer

        return await eventually(f"{method} {target} is final", asked, seconds)

    async def has_status(self, customer_id: str, status: str) -> Any:
        async def reached() -> Any:
            found = await self.customer(customer_id)
            assert found["status"] == status, found["status"]
            return found

        return await eventually(f"{customer_id} is {status}", reached)

    async def has_account(self, customer_id: str) -> Any:
        async def opened() -> Any:
            found = await self.customer(customer_id)
            return found if found["accounts"] else None

        return await eventually(f"{customer_id} has an account", opened)

    async def has_events(
        self, customer_id: str, expected: Counter[str], perhaps: Counter[str] = NONE
    ) -> None:
        """Exactly these, once they are all there; those of `perhaps` among them may be missing, all together."""

        async def published() -> bool:
            found = Counter(event["type"] for event in await self.events.of(customer_id))
            assert found >= expected - perhaps, dict(found)
            return True

        await eventually(f"events of {customer_id}", published, poll_seconds=EVENTS_POLL_SECONDS)
        found = Counter(event["type"] for event in await self.events.of(customer_id))
        assert found in (expected, expected - perhaps), (found, expected)

    async def exists_once(self, data: Any) -> None:
        """`data` of an onboarding's answer: all of it is at both providers, once, and was told once."""
        await self.bank.has_once(data)
        customer_id = data["business"]["customer_id"]
        await self.has_events(customer_id, ONBOARDED)


def bank_of(stack: Stack, session: aiohttp.ClientSession) -> Bank:
    """The bank behind the stack."""
    if not has_fake(stack.env):
        return Bank(session, stack.sandbox_url)
    return BankAtIncrease(session, stack.increase_url, stack.environment.secrets.increase_fake_key)


@contextlib.asynccontextmanager
async def hands_on(deployment: Deployment) -> AsyncIterator[Live]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        base_url = deployment.stack.base_url
        bank = bank_of(deployment.stack, session)
        key = await deployment.key("anvil")
        interface = deployment.interface
        partner = Api(session, base_url, interface, key, deployment.logs)
        try:
            yield Live(deployment, session, interface, partner, bank)
        finally:
            await deployment.events.close()


@pytest.fixture(scope="package")
def own_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    """Beside that of other tests, which may count what is in theirs."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest.fixture(scope="package")
def chosen_bank() -> str:
    """Behind the stack of a folder, which may have another."""
    return BANK


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def deployment(own_environment: Environment, chosen_bank: str) -> AsyncIterator[Deployment]:
    """One stack for all tests of a worker that are of one kind; its callers are not kept waiting for long.

    It ends with the last of them: processes that only wait cost a hundredth of a core each.
    """
    begin_loading()  # while the virtual host is made
    events = RecordedEvents(own_environment.amqp_url)
    await events.begin()
    with tempfile.TemporaryDirectory(prefix="bankside-test-") as folder:
        async with running_stack(
            own_environment,
            Path(folder),
            bank=chosen_bank,
            **short_waits(),
            **short_transit(chosen_bank),
        ) as stack:
            yield Deployment(stack, events)


@pytest_asyncio.fixture
async def live(deployment: Deployment) -> AsyncIterator[Live]:
    """The stack, whole and healthy; and that no fact was told twice, checked after every test."""
    for name, process in deployment.stack.services.items():
        if not process.is_running:
            await deployment.stack.restart(name)
    async with hands_on(deployment) as hands:
        await hands.bank.heal()
        yield hands
        await hands.bank.heal()
        if isinstance(hands.bank, BankAtIncrease):
            assert await hands.bank.violations() == []
        await hands.events.fetch()
        hands.events.check()


@pytest.fixture
def idempotency_key() -> str:
    return new_key()
