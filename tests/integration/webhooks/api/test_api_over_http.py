"""Webhooks and events as callers see them: signed HTTP, both families, answers that the document allows."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from libs.contracts.errors import NotFound
from libs.contracts.model import Command
from libs.contracts.onboarding_operations import FIND_CUSTOMER
from libs.contracts.ownership import CustomerOwner, FindCustomer
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.table import operations_of
from libs.handling.queries import run_queries
from libs.messaging.broker import Broker
from libs.runtime.process import Process
from tests.integration.webhooks.api.desk import NOWHERE, WAIT_SECONDS, Desk
from tests.support.api import Api, Key, public_interface
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.stack import Stack

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTNER = "/partner/reseller"
CUSTOMER = "/customer"
SUBSCRIPTIONS = "/webhooks/subscriptions"
CREATION = {"event_types": "*", "callback_url": NOWHERE}


@asynccontextmanager
async def knowing_customers(stack: Stack, tenant: str) -> AsyncIterator[None]:
    """Onboarding, as far as the making of keys asks it: every customer is the tenant's."""

    async def owner(_: Principal, command: FindCustomer, __: float) -> Result:
        found = command.customer_id
        return Result(
            CustomerOwner(customer_id=found, tenant=tenant, business_name="Acme", dba=None)
        )

    async def nothing(_: Principal, __: Command, ___: float) -> Result:
        raise NotFound

    names = (row.name for row in operations_of("onboarding") if row.is_query)
    handlers = dict.fromkeys(names, nothing) | {FIND_CUSTOMER.name: owner}
    broker = Broker(stack.environment.amqp_urls["onboarding"], "onboarding")
    sealer = sealer_of(stack.environment.secrets, "onboarding")
    async with broker.open(), run_queries(Process("onboarding"), sealer, broker, handlers):
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield


class Callers:
    def __init__(self, stack: Stack, session: aiohttp.ClientSession, interface: Any) -> None:
        self._stack = stack
        self._session = session
        self._interface = interface

    async def partner(self, tenant: str, *more: str) -> Api:
        return await self._api("partner", "--tenant", tenant, *more)

    async def customer(self, customer_id: str, tenant: str) -> Api:
        async with knowing_customers(self._stack, tenant):
            return await self._api("customer", "--customer", customer_id)

    async def _api(self, family: str, *more: str) -> Api:
        made = await self._stack.command("keys", "create", "--family", family, *more)
        key = Key(made["subscription_key"], made["secret"], made["tenant"])
        logs = lambda: self._stack.log("webhook_dispatcher")[-3000:]  # noqa: E731
        return Api(self._session, self._stack.base_url, self._interface, key, logs)


@pytest_asyncio.fixture(loop_scope="session")
async def callers(desk: Desk) -> AsyncIterator[Callers]:
    gateway = desk.stack.services["gateway"]
    if not gateway.is_running:
        await gateway.start()
    async with aiohttp.ClientSession() as session:
        yield Callers(desk.stack, session, public_interface())


async def walk(api: Api, prefix: str) -> str:
    """Every route of a family once; the id of the event that was tested."""
    made = (await api.post(f"{prefix}{SUBSCRIPTIONS}", CREATION)).data
    one = f"{prefix}{SUBSCRIPTIONS}/{made['subscription_id']}"
    assert (await api.get(f"{prefix}{SUBSCRIPTIONS}")).data == [made]
    assert (await api.get(one)).data == made
    assert (await api.patch(one, {"description": "mine"})).data["description"] == "mine"
    secret = (await api.get(f"{one}/secret")).data["secret"]
    rotated = (await api.call("POST", f"{one}/secret/rotate")).data
    assert rotated["secret"] != secret
    tested = (await api.call("POST", f"{one}/test")).data
    listed = await api.get(f"{one}/deliveries?limit=10&status=pending")
    assert [found["delivery_id"] for found in listed.data] == [tested["delivery_id"]]
    delivery = f"{one}/deliveries/{tested['delivery_id']}"
    assert (await api.get(delivery)).data["event_id"] == tested["event_id"]
    again = (await api.call("POST", f"{delivery}/resend")).data
    assert again["event_id"] == tested["event_id"]
    since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    assert (await api.post(f"{one}/recover", {"since": since})).data == {"scheduled": 0}
    event = (await api.get(f"{prefix}/events/{tested['event_id']}")).data
    assert event in (await api.get(f"{prefix}/events?event_type=webhook_subscription")).data
    deleted = await api.call("DELETE", one)
    assert deleted.body["data"] is None
    assert (await api.get(one)).code == "not_found"
    return str(event["id"])


async def test_a_partner_and_its_customer_each_have_all_routes_and_see_their_own(
    desk: Desk, callers: Callers
) -> None:
    partner = await callers.partner(f"tenant-{uuid.uuid4().hex[:8]}")
    customer = await callers.customer(str(uuid.uuid4()), partner.key.tenant)

    of_partner = await walk(partner, PARTNER)
    of_customer = await walk(customer, CUSTOMER)

    seen = [event["id"] for event in (await partner.get(f"{PARTNER}/events")).data]
    assert seen == [of_partner]
    assert (await partner.get(f"{PARTNER}/events/{of_customer}")).code == "not_found"
    assert [e["id"] for e in (await customer.get(f"{CUSTOMER}/events")).data] == [of_customer]
    assert (await customer.get(f"{CUSTOMER}/events/{of_partner}")).code == "not_found"
    assert (await customer.get(f"{PARTNER}/events")).code == "wrong_route_family"


async def test_a_creation_that_is_repeated_under_its_key_is_one_subscription(
    desk: Desk, callers: Callers
) -> None:
    partner = await callers.partner(f"tenant-{uuid.uuid4().hex[:8]}")

    first = await partner.post(f"{PARTNER}{SUBSCRIPTIONS}", CREATION, "my-key")
    second = await partner.post(f"{PARTNER}{SUBSCRIPTIONS}", CREATION, "my-key")

    assert second.is_replayed
    assert second.data == first.data
    assert len((await partner.get(f"{PARTNER}{SUBSCRIPTIONS}")).data) == 1


async def test_reading_webhooks_is_not_enough_to_see_a_secret(desk: Desk, callers: Callers) -> None:
    tenant = f"tenant-{uuid.uuid4().hex[:8]}"
    writer = await callers.partner(tenant)
    reader = await callers.partner(tenant, "--scope", "webhooks:read")
    made = (await writer.post(f"{PARTNER}{SUBSCRIPTIONS}", CREATION)).data
    one = f"{PARTNER}{SUBSCRIPTIONS}/{made['subscription_id']}"

    assert (await reader.get(one)).data == made
    for method, target in (
        ("GET", f"{one}/secret"),
        ("POST", f"{one}/secret/rotate"),
        ("POST", f"{one}/test"),
        ("DELETE", one),
        ("GET", f"{PARTNER}/events"),
    ):
        assert (await reader.call(method, target)).code == "insufficient_scope"


async def test_a_kind_that_is_not_known_and_an_address_inside_are_422(
    desk: Desk, callers: Callers
) -> None:
    partner = await callers.partner(f"tenant-{uuid.uuid4().hex[:8]}")

    unknown = await partner.post(f"{PARTNER}{SUBSCRIPTIONS}", CREATION | {"event_types": "x"})
    inside = await partner.post(
        f"{PARTNER}{SUBSCRIPTIONS}", CREATION | {"callback_url": "https://10.0.0.1/"}
    )

    assert (unknown.status, inside.status) == (422, 422)
    assert unknown.body["detail"][0]["loc"] == ["body", "event_types"]
    assert "'transaction'" in unknown.body["detail"][0]["ctx"]["expected"]
    assert inside.body["detail"][0]["loc"] == ["body", "callback_url"]
