"""Opening the adapters of the companies that the settings choose."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import ModuleType
from typing import Any

from libs.providers.companies import Company, NoAdapters, Role, composition
from libs.runtime.process import Misconfigured
from libs.runtime.provider_settings import ProviderSettings


async def open_by_role(
    package: str, settings: ProviderSettings, opened: AsyncExitStack, *more: Any
) -> dict[Role, Any]:
    """By role, what `open_adapters` of the chosen company's `composition` returned; once for each company.

    Args:
        package: the adapters of a service, as in `services.payments.adapters`.
        more: further arguments for `open_adapters`.

    Raises:
        Misconfigured: a chosen company's adapters cannot work here.
    """
    settings.require_usable()
    found: dict[Role, Any] = {}
    for company, roles in settings.companies().items():
        part = _composition(package, settings, company, roles[0])
        found |= dict.fromkeys(roles, await part.open_adapters(settings, roles, opened, *more))
    return found


def _composition(
    package: str, settings: ProviderSettings, company: Company, role: Role
) -> ModuleType:
    try:
        return composition(package, company)
    except NoAdapters:
        variable = settings.variable(f"{role}_provider")
        raise Misconfigured(
            f"set {variable} to another company: {settings.service} has no adapters for {company}."
        ) from None
