"""A database of ours that stalls is not the providers' fault: no write is given up, asked about or sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from libs.contracts import onboarding_operations as table
from libs.contracts.customer_views import OnboardingResult
from libs.persistence.engine import open_database
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers.parts import Parts
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, partner
from tests.integration.onboarding.shelf import new_store
from tests.support.fake_providers import FakeProviders, FakeWrite
from tests.support.infrastructure import Environment
from tests.support.routes import route_to

STALL_SECONDS = 3.0


@dataclass
class StallingProviders(FakeProviders):
    """Core banking creates a business, and meanwhile something happens."""

    meanwhile: Callable[[], None] = field(default=lambda: None)

    def create_business(self, *arguments: Any) -> FakeWrite[Any]:
        self.meanwhile()
        return super().create_business(*arguments)


async def test_an_onboarding_goes_on_where_its_database_stalled(environment: Environment) -> None:
    bank, store = StallingProviders(), new_store()
    async with route_to(environment.database_urls["onboarding"]) as route:

        def stall() -> None:
            route.stall()
            asyncio.get_running_loop().call_later(STALL_SECONDS, route.resume)

        bank.meanwhile = stall
        database = open_database(route.url, "stalled")
        handlers = command_handlers(Parts(bank, bank, store, Events(store)))
        principal = partner(f"t{uuid4().hex[:8]}")
        leased = await driving.accept(database, table.ONBOARD_CUSTOMER.name, principal)

        result = await driving.drive(database, handlers, leased, principal, application())

        await database.close()
    assert isinstance(result.data, OnboardingResult)
    assert result.data.status == "approved"
    assert bank.calls["open_account"] == ["send"]
    assert all(calls in ([], ["send"]) for calls in bank.calls.values())
