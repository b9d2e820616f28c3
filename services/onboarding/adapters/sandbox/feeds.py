"""The event feeds of the identity and the financial provider, page by page."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.providers.sandbox.feed_pages import read_entries
from libs.providers.sandbox.http import ProviderClient
from services.onboarding.models import AccountEntry, IdentityEntry


class IdentityFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[IdentityEntry]:
        return await read_entries(self._client, _identity_entry, after, limit)


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[AccountEntry]:
        return await read_entries(self._client, _account_entry, after, limit)


def _identity_entry(item: Any) -> IdentityEntry:
    return msgspec.convert(item, IdentityEntry)


def _account_entry(item: Any) -> AccountEntry:
    return msgspec.convert(item, AccountEntry)
