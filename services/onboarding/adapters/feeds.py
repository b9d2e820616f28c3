"""The event feeds of the identity and the financial provider, page by page."""

from __future__ import annotations

from libs.providers.answers import read_entries
from libs.providers.http import ProviderClient
from services.onboarding.models import AccountEntry, IdentityEntry


class IdentityFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[IdentityEntry]:
        return await read_entries(self._client, IdentityEntry, after, limit)


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[AccountEntry]:
        return await read_entries(self._client, AccountEntry, after, limit)
