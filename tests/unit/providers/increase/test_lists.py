"""Objects that Increase is asked for one by one, and how many requests that makes."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from increase import AsyncIncrease
from pydantic import SecretStr

from libs.contracts.errors import ProviderTimeout
from libs.gathering import gather_or_cancel
from libs.providers.companies import Role
from libs.providers.increase.clients import Clients
from libs.providers.increase.lists import retrieve_each
from libs.providers.increase.settings import IncreaseSettings
from tests.unit.providers.conftest import session, soon

__all__ = ["session"]

CONNECTIONS = 3
SETTINGS = IncreaseSettings.model_construct(
    increase_url="http://increase.test", increase_key=SecretStr("key")
)


async def test_all_roles_together_retrieve_as_many_objects_at_once_as_there_are_connections(
    session: aiohttp.ClientSession,
) -> None:
    clients = Clients(SETTINGS, session, 5.0, CONNECTIONS)
    under_way, most = 0, 0

    async def retrieve(_: AsyncIncrease, one: str) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return one

    ids = [f"object_{number}" for number in range(10)]
    found = await gather_or_cancel(
        (
            retrieve_each(clients.at(role), "get_object", retrieve, ids, deadline=soon())
            for role in (Role.IDENTITY, Role.CORE)
        ),
        name="roles",
    )

    assert found == [{one: one for one in ids}] * 2
    assert most == CONNECTIONS


async def test_the_requests_of_all_roles_together_have_one_rate(
    session: aiohttp.ClientSession,
) -> None:
    clients = Clients(SETTINGS, session, 5.0, CONNECTIONS, requests_per_second=1 / 3600)
    asked: list[str] = []

    async def ask(role: Role) -> None:
        async def call(_: AsyncIncrease) -> str:
            asked.append(role)
            return "an answer"

        await clients.at(role).read("get_object", call, deadline=soon())

    await ask(Role.IDENTITY)
    with pytest.raises(ProviderTimeout):
        await ask(Role.CORE)

    assert asked == [Role.IDENTITY]
