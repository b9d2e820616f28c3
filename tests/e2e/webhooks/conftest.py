"""These tests share one running stack per worker, and on it a partner of their own with two customers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.support.api import Api
from tests.support.dispatcher_tables import DispatcherTables, dispatcher_tables
from tests.support.dispatcher_tables import retries_wait as retries_that_wait
from tests.support.event_bus import EventBus, event_bus
from tests.support.live import ONBOARDED, Live
from tests.support.subscribers import PARTNER, listed_events
from tests.support.waiting import eventually

TENANT = "tidewater"


@dataclass(frozen=True)
class Cast:
    """A partner with two customers, each with a key of its own, and the partner of another tenant."""

    partner: Api
    customer: Api
    customer_id: str
    account_id: str
    neighbour: Api
    stranger: Api


@pytest.fixture(scope="package")
def known_customers() -> list[tuple[str, str]]:
    """Customer and account ids, made by the first test that asks."""
    return []


@pytest.fixture
async def cast(live: Live, known_customers: list[tuple[str, str]]) -> Cast:
    partner = await live.of_tenant(TENANT)
    if not known_customers:
        for _ in range(2):
            business = (await live.onboarded(api=partner))["business"]
            known_customers.append((business["customer_id"], business["account_id"]))

        async def told() -> bool:
            found, _ = await listed_events(partner, PARTNER)
            return len(found) == 2 * ONBOARDED.total()

        await eventually("the onboardings are recorded", told)
    (customer_id, account_id), (neighbour_id, _) = known_customers
    return Cast(
        partner,
        await live.of_customer(customer_id),
        customer_id,
        account_id,
        await live.of_customer(neighbour_id),
        await live.of_tenant("brass"),
    )


@pytest_asyncio.fixture
async def bus(live: Live) -> AsyncIterator[EventBus]:
    async with event_bus(live.stack.environment.amqp_url) as opened:
        yield opened


@pytest_asyncio.fixture
async def tables(live: Live) -> AsyncIterator[DispatcherTables]:
    async with dispatcher_tables(live.stack.environment) as opened:
        yield opened


@pytest_asyncio.fixture
async def retries_wait(live: Live) -> AsyncIterator[None]:
    """Until the test makes them due."""
    async with retries_that_wait(live.stack.environment):
        yield
