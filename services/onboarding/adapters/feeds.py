"""The event feeds of the identity and the financial provider, page by page."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.http import ProviderClient
from services.onboarding.models import AccountEntry, IdentityEntry

FETCH_SECONDS = 10.0

EntryT = TypeVar("EntryT", bound=msgspec.Struct)


async def _page(
    client: ProviderClient, entry: type[EntryT], after: int, limit: int
) -> list[EntryT]:
    """The entries after a position.

    Raises:
        ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
    """
    params = (("after", str(after)), ("limit", str(limit)))
    try:
        answer: Any = await client.read(
            "list_events", "/events", params, deadline=time.time() + FETCH_SECONDS
        )
        return [msgspec.convert(item, entry) for item in answer["events"]]
    except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
        raise ProviderError from error


class IdentityFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[IdentityEntry]:
        return await _page(self._client, IdentityEntry, after, limit)


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[AccountEntry]:
        return await _page(self._client, AccountEntry, after, limit)
