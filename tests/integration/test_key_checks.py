"""A key that is replaced under its id is noticed at the start of a service, and by `bankside keys reseal`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from sqlalchemy import text

from libs.handling.key_checks import require_known_keys
from libs.persistence.engine import Database, open_database
from libs.runtime.process import Misconfigured
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import EXIT_MISCONFIGURED
from services.gateway.settings import Settings as GatewaySettings
from services.onboarding.settings import Settings as OnboardingSettings
from services.webhook_dispatcher.settings import Settings as DispatcherSettings
from tests.support.infrastructure import Environment
from tests.support.stack import Stack
from tests.unit.persistence.keys import a_key

SETTINGS: dict[str, type[MessagingSettings]] = {
    "gateway": GatewaySettings,
    "onboarding": OnboardingSettings,
    "webhook_dispatcher": DispatcherSettings,
}
STORAGE = "BANKSIDE_ONBOARDING_STORAGE_KEYS"
LOOKUP = "BANKSIDE_ONBOARDING_LOOKUP_KEYS"


def load(service: str, environment: dict[str, str], **changes: str) -> MessagingSettings:
    with patch.dict(os.environ, environment | changes):
        return SETTINGS[service].load()


def under_its_id(ring: str) -> str:
    """Another key under the id of the ring's first one."""
    return f"{ring.partition(':')[0]}:{a_key()}"


@pytest.fixture
def stack(fresh_environment: Environment, tmp_path: Path) -> Stack:
    return Stack(fresh_environment, tmp_path)


@pytest.mark.parametrize("service", SETTINGS)
async def test_a_service_does_not_start_with_another_key_under_a_known_id(
    fresh_environment: Environment, stack: Stack, service: str
) -> None:
    database = open_database(fresh_environment.database_urls[service], "tests")
    await require_known_keys(database, load(service, stack.env))
    await database.close()
    variable = f"BANKSIDE_{service.upper()}_STORAGE_KEYS"
    ring = stack.env[variable]

    stack.services[service].spawn(**{variable: under_its_id(ring)})
    code = await stack.services[service].ended()

    assert code == EXIT_MISCONFIGURED
    assert f"put the key {ring.partition(':')[0]} of {variable} back as it was" in stack.log(
        service
    )


@pytest.mark.parametrize("variable", [STORAGE, LOOKUP, "BANKSIDE_ONBOARDING_GATEWAY_KEYS"])
async def test_another_key_under_a_known_id_is_refused_and_a_new_one_under_a_new_id_is_not(
    database: Database, stack: Stack, variable: str
) -> None:
    await require_known_keys(database, load("onboarding", stack.env))
    ring = stack.env[variable]
    edited = load("onboarding", stack.env, **{variable: under_its_id(ring)})
    added = load("onboarding", stack.env, **{variable: f"{ring},later:{a_key()}"})
    later = load("onboarding", stack.env, **{variable: f"{ring},later:{a_key()}"})

    with pytest.raises(Misconfigured, match=f"of {variable} back"):
        await require_known_keys(database, edited)
    await require_known_keys(database, added)
    with pytest.raises(Misconfigured, match=f"the key later of {variable}"):
        await require_known_keys(database, later)
    await require_known_keys(database, added)
    await require_known_keys(database, load("onboarding", stack.env))


async def test_of_processes_that_start_at_once_with_different_keys_one_starts(
    database: Database, stack: Stack
) -> None:
    rings = [load("onboarding", stack.env, **{STORAGE: f"k1:{a_key()}"}) for _ in range(4)]

    ended = await asyncio.gather(
        *(require_known_keys(database, settings) for settings in rings), return_exceptions=True
    )

    assert sorted(type(one).__name__ for one in ended) == ["Misconfigured"] * 3 + ["NoneType"]
    async with database.transaction() as connection:
        noted = await connection.execute(
            text("SELECT count(*) FROM key_check WHERE ring = 'storage_keys'")
        )
        assert noted.scalar_one() == 1
