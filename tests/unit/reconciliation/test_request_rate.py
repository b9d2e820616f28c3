"""The requests of reconciliation to Increase, which is asked for each record by itself."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from pydantic import SecretStr

from libs.contracts.errors import ProviderTimeout
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from libs.providers.increase.settings import IncreaseSettings
from services.reconciliation.adapters.increase.composition import open_adapters
from services.reconciliation.settings import Settings
from tests.unit.providers.conftest import Provider, provider, soon
from tests.unit.providers.increase.conftest import lists

__all__ = ["provider"]


class AtIncrease(Settings, IncreaseSettings):
    pass


async def test_requests_in_all_roles_together_have_the_rate_that_is_set(provider: Provider) -> None:
    provider.answers = [lists([])]
    settings = AtIncrease.model_construct(
        database_url=SecretStr(""),
        amqp_url=SecretStr(""),
        onboarding_keys=SecretStr(""),
        increase_url=provider.url,
        increase_key=SecretStr("key"),
        provider_requests_per_second=1 / 3600,
    )
    async with AsyncExitStack() as opened:
        adapters = await open_adapters(settings, [*Role], opened)

        await adapters.identity().newest_entry(FeedCursor(0), soon())
        with pytest.raises(ProviderTimeout):
            await adapters.core().newest_entry(FeedCursor(0), soon())

    assert len(provider.seen) == 1
