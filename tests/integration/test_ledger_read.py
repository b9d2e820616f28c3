"""ledger_read beside onboarding and the sandbox; the test asks over the broker, as the gateway does."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import aio_pika
import aiohttp
import pytest
import pytest_asyncio

from deploy.local.services import SERVICES
from libs.contracts import ledger_read_operations as operations
from libs.contracts.errors import NotFound, ProviderError, Unavailable
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.messaging.broker import Broker
from libs.messaging.service_client import ServiceClient
from libs.messaging.topology import EVENTS
from tests.support.infrastructure import Infrastructure
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.stack import Stack, running_stack
from tests.support.waiting import eventually

SERVICES_OF_READS = tuple(
    one for one in SERVICES if one.name in {"onboarding", "ledger_read", "provider_sandbox"}
)
WAIT_SECONDS = 20.0
ASK_SECONDS = 25.0
EIN_SERIAL = itertools.count(100)


def new_partner() -> Principal:
    return Principal(f"t_{uuid.uuid4().hex}", "Partner", Family.PARTNER, "sub_partner")


def customer_of(partner: Principal, customer_id: str) -> Principal:
    return Principal(partner.tenant, "Partner", Family.CUSTOMER, "sub_customer", customer_id)


def application(external_number: str) -> dict[str, Any]:
    address = {"street_1": "1 Main St", "city": "Albany", "state": "NY", "zip_code": "12207"}
    return {
        "business": {
            "business_name": "Acme Incorporated",
            "dba": "Acme",
            "naics_code": "541511",
            "formation_state": "NY",
            "formation_date": "2015-04-01",
            "ein": f"12{next(EIN_SERIAL)}4321",
            "phone": "+12125550123",
            "email": "office@example.com",
            "business_address": address,
        },
        "persons": [
            {
                "first_name": "Ada",
                "last_name": "Lane",
                "date_of_birth": "1980-02-03",
                "home_address": address,
                "tin": "536904399",
                "email": "ada@example.com",
                "phone": "+12125550124",
                "controller": True,
            }
        ],
        "external_bank_account": {
            "bank_name": "Other Bank",
            "name_on_account": "Acme Incorporated",
            "routing_number": "021000021",
            "account_number": external_number,
            "address_on_account": address,
        },
    }


@dataclass
class World:
    stack: Stack
    service_client: ServiceClient
    http: aiohttp.ClientSession
    events: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, operation: Operation, principal: Principal, **command: Any) -> Any:
        request = operation.command(**command)
        answer = await self.service_client.query(
            operation, principal, request, time.time() + ASK_SECONDS * pace()
        )
        return answer["data"]

    async def onboard(self, partner: Principal, external_number: str = "998877665544") -> Any:
        command_id = str(uuid.uuid4())
        envelope = self.service_client.envelope(
            ONBOARD_CUSTOMER,
            partner,
            ONBOARD_CUSTOMER.command.model_validate(application(external_number)),
            command_id=command_id,
            request_id=command_id,
            deadline=time.time() + ASK_SECONDS * pace(),
        )
        reply = await self.service_client.send_command(envelope)
        assert reply.error is None, reply.error
        business = self.service_client.open_result(ONBOARD_CUSTOMER, reply)["data"]["business"]
        assert business["account_id"] is not None
        return business

    async def simulate(self, path: str, **body: Any) -> None:
        url = f"{self.stack.sandbox_url}/simulate/{path}"
        async with self.http.post(url, json=body) as response:
            assert response.status == 200, await response.text()

    async def account_of_a_stranger(self) -> str:
        """An account at the bank of which onboarding knows nothing."""

        async def core(path: str, body: dict[str, Any]) -> Any:
            url = f"{self.stack.sandbox_url}/core/{path}"
            token = self.stack.environment.secrets.provider_tokens["onboarding"]["core"]
            headers = {
                "Authorization": f"Bearer {token}",
                "Idempotency-Key": uuid.uuid4().hex,
            }
            async with self.http.post(url, json=body, headers=headers) as response:
                assert response.status == 200, await response.text()
                return await response.json()

        customer = await core(
            "customers",
            {
                "customer_id": str(uuid.uuid4()),
                "kind": "business",
                "business_customer_id": None,
                "fields": {"business_name": "Stranger"},
            },
        )
        account = await core(
            "accounts",
            {
                "core_id": customer["core_id"],
                "account_group": "deposit",
                "account_title": "Stranger",
            },
        )
        return str(account["account_id"])

    def told(self, account_id: str) -> list[tuple[str, int]]:
        """The events of an account: each once, though the broker may deliver one twice."""
        seen = {event["id"]: event for event in self.events if event["data"]["id"] == account_id}
        return [(event["type"], event["sequence"]) for event in seen.values()]

    async def until(self, condition: Callable[[], bool]) -> None:
        async def holds() -> bool:
            assert condition(), self.events[-10:]
            return True

        await eventually("what happened is told", holds, WAIT_SECONDS)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stack(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The services of which reads are made, where no other test's consume."""
    environment = infrastructure.create()
    async with running_stack(environment, tmp_path_factory.mktemp("stack"), SERVICES_OF_READS) as s:
        yield s
    infrastructure.drop(environment)


@pytest.fixture
async def world(stack: Stack) -> AsyncIterator[World]:
    environment = stack.environment
    broker = Broker(environment.amqp_urls["gateway"], "test")
    service_client = ServiceClient(sealer_of(environment.secrets, "gateway"))
    broker.add(service_client)
    async with (
        await aio_pika.connect(environment.amqp_url) as connection,
        aiohttp.ClientSession() as http,
        broker.open(),
    ):
        await broker.start(wait_seconds=10 * pace())
        world = World(stack, service_client, http)

        async def on_event(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            world.events.append(json.loads(message.body))

        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(EVENTS, "account.*")
        await queue.consume(on_event, no_ack=True)
        yield world


async def test_what_was_onboarded_is_read_at_once_and_by_its_owner_alone(world: World) -> None:
    partner, stranger = new_partner(), new_partner()
    business = await world.onboard(partner, "123998877")
    other = await world.onboard(partner)
    account_id, customer = business["account_id"], customer_of(partner, business["customer_id"])
    amount = "1234567890123.45"
    await world.simulate(
        "deposits", account_id=account_id, amount=amount, counterparty_name="Payer"
    )

    balance = await world.ask(operations.GET_BALANCE, partner, account_id=account_id)
    account = await world.ask(operations.GET_ACCOUNT, partner, account_id=account_id)
    external = await world.ask(operations.GET_EXTERNAL_ACCOUNT, partner, account_id=account_id)
    of_partner = await world.ask(operations.LIST_PARTNER_ACCOUNTS, partner)
    of_customer = await world.ask(operations.LIST_CUSTOMER_ACCOUNTS, customer)
    linked = await world.ask(operations.LIST_EXTERNAL_ACCOUNTS, customer)

    assert balance["available_balance"] == {"amount": Decimal(amount), "currency": "USD"}
    assert (account["id"], account["account_number"]) == (account_id, business["account_number"])
    assert external["external_account_number"] == "123998877"
    assert of_partner["name"] == "Partner"
    assert {item["id"] for item in of_partner["accounts"]} == {account_id, other["account_id"]}
    assert (of_customer["name"], of_customer["dba_name"]) == ("Acme Incorporated", "Acme")
    assert [item["id"] for item in of_customer["accounts"]] == [account_id]
    assert [(item["account_number"], item["primary"]) for item in linked] == [("8877", True)]
    for operation in (
        operations.GET_BALANCE,
        operations.GET_ACCOUNT,
        operations.GET_EXTERNAL_ACCOUNT,
    ):
        for principal in (stranger, customer_of(partner, other["customer_id"])):
            with pytest.raises(NotFound):
                await world.ask(operation, principal, account_id=account_id)
    assert (await world.ask(operations.LIST_PARTNER_ACCOUNTS, stranger))["accounts"] == []


async def test_a_failing_provider_is_not_taken_for_a_missing_account(world: World) -> None:
    partner = new_partner()
    account_id = (await world.onboard(partner))["account_id"]
    faults = f"{world.stack.sandbox_url}/faults"
    rule = {"api": "financial", "operation": "get_balance", "kind": "error"}

    async with world.http.put(faults, json=rule) as response:
        assert response.status == 200
    try:
        with pytest.raises(ProviderError):
            await world.ask(operations.GET_BALANCE, partner, account_id=account_id)
    finally:
        async with world.http.delete(faults) as response:
            assert response.status == 200

    balance = await world.ask(operations.GET_BALANCE, partner, account_id=account_id)
    assert balance["account_id"] == account_id


async def test_what_happens_to_an_account_is_told_in_order(world: World) -> None:
    business = await world.onboard(new_partner())
    account_id = business["account_id"]

    for what in ("restrict", "unrestrict", "close"):
        await world.simulate(f"accounts/{account_id}/{what}")
    await world.until(lambda: len(world.told(account_id)) == 4)

    assert world.told(account_id) == [
        ("account.opened", 1),
        ("account.restricted", 2),
        ("account.unrestricted", 3),
        ("account.closed", 4),
    ]
    closed = world.events[-1]
    assert closed["data"]["object"] == "account"
    assert closed["data"]["account_number"] == business["account_number"][-4:]
    assert closed["data"]["customer_id"] == business["customer_id"]
    assert closed["data"]["close_date"].endswith("Z")


async def test_crashes_around_the_commit_lose_and_repeat_nothing(world: World) -> None:
    account_id = (await world.onboard(new_partner()))["account_id"]
    await world.until(lambda: len(world.told(account_id)) == 1)
    service = world.stack.services["ledger_read"]
    await service.kill()
    endings = []

    for what, point in (("restrict", "before_commit"), ("unrestrict", "after_commit")):
        await world.simulate(f"accounts/{account_id}/{what}")
        service.spawn(BANKSIDE_CRASH_AT=f"feed.financial.{point}")
        endings.append(await service.ended())
    await service.start()
    await world.simulate(f"accounts/{account_id}/close")
    await world.until(lambda: len(world.told(account_id)) >= 4)

    assert endings == [-9, -9]
    assert world.told(account_id) == [
        ("account.opened", 1),
        ("account.restricted", 2),
        ("account.unrestricted", 3),
        ("account.closed", 4),
    ]


async def test_without_onboarding_reads_are_unavailable_and_the_feed_waits(world: World) -> None:
    partner = new_partner()
    known, unknown = (await world.onboard(partner), await world.onboard(partner))
    await world.ask(operations.GET_BALANCE, partner, account_id=known["account_id"])
    await world.until(lambda: len(world.told(unknown["account_id"])) == 1)
    await world.stack.restart("ledger_read", BANKSIDE_OWNERSHIP_SECONDS="0.5")

    async def is_remembered() -> bool:
        """Once onboarding has said whose it is, in the short time that it has for that."""
        try:
            await world.ask(operations.GET_BALANCE, partner, account_id=known["account_id"])
        except Unavailable:
            return False
        return True

    await eventually("the owner is remembered", is_remembered)
    await world.stack.kill("onboarding")
    try:
        await world.simulate(f"accounts/{unknown['account_id']}/restrict")
        remembered = await world.ask(
            operations.GET_BALANCE, partner, account_id=known["account_id"]
        )
        with pytest.raises(Unavailable):
            await world.ask(operations.GET_BALANCE, partner, account_id=unknown["account_id"])
        with pytest.raises(Unavailable):
            await world.ask(operations.LIST_PARTNER_ACCOUNTS, partner)
        told_meanwhile = world.told(unknown["account_id"])
    finally:
        await world.stack.restart("onboarding")

    await world.until(lambda: len(world.told(unknown["account_id"])) == 2)
    assert remembered["account_id"] == known["account_id"]
    assert told_meanwhile == [("account.opened", 1)]
    assert world.told(unknown["account_id"])[1] == ("account.restricted", 2)
    await world.stack.restart("ledger_read")


async def test_an_account_of_nobody_we_know_is_skipped_and_does_not_stop_the_feed(
    world: World,
) -> None:
    stranger = await world.account_of_a_stranger()

    account_id = (await world.onboard(new_partner()))["account_id"]
    await world.until(lambda: len(world.told(account_id)) == 1)

    assert world.told(stranger) == []
    assert "feed_entry_of_unknown_customer" in world.stack.log("ledger_read")


async def test_no_external_account_number_is_in_the_log(world: World) -> None:
    partner = new_partner()
    account_id = (await world.onboard(partner, "70707070123"))["account_id"]

    await world.ask(operations.GET_EXTERNAL_ACCOUNT, partner, account_id=account_id)

    assert "70707070123" not in world.stack.log("ledger_read")
