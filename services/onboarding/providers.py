"""The providers of onboarding: each role by the company that is chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from libs.providers.companies import Role
from libs.runtime.provider_adapters import open_by_role
from services.onboarding.ports import Adapters, Providers
from services.onboarding.settings import Settings

PACKAGE = "services.onboarding.adapters"


async def open_providers(settings: Settings, opened: AsyncExitStack) -> Providers:
    """Closed with `opened`. Raises Misconfigured."""
    adapters: Mapping[Role, Adapters] = await open_by_role(PACKAGE, settings, opened)
    return Providers(
        adapters[Role.IDENTITY].identity(),
        adapters[Role.CORE].core(),
        adapters[Role.FINANCIAL].financial(),
    )
