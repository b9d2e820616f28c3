"""The newest records that Increase has of ours, for `newest_records`: our ids of businesses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from libs.contracts.errors import ProviderError
from libs.contracts.ids import parse_made_id
from libs.gathering import gather_or_cancel
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.increase.accounts import list_accounts
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.entities import list_entities, retrieve_entity
from libs.providers.increase.lists import LARGEST_PAGE, read_page
from libs.providers.newest_records import NewestPage

AT_ONCE = 8


class NewestEntities:
    """The customers by their entities. An entity of others has another description, or none."""

    def __init__(self, client: IncreaseClient) -> None:
        self._client = client

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        """Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer."""
        page = await read_page(
            self._client,
            "list_entities",
            lambda sdk, cursor: list_entities(sdk, cursor, min(limit, LARGEST_PAGE)),
            after,
            deadline=time.time() + FETCH_SECONDS,
        )
        return _page([entity.description for entity in page.rows], page.next_cursor)


class NewestAccounts:
    """The customers by their accounts: at core banking where an entity was made for its identity already."""

    def __init__(self, client: IncreaseClient) -> None:
        self._client = client

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        """Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer."""
        deadline = time.time() + FETCH_SECONDS
        page = await read_page(
            self._client,
            "list_accounts",
            lambda sdk, cursor: list_accounts(sdk, cursor, min(limit, LARGEST_PAGE)),
            after,
            deadline=deadline,
        )
        capacity = asyncio.Semaphore(AT_ONCE)

        async def owner(entity_id: str) -> str | None:
            async with capacity:
                try:
                    entity = await self._client.read(
                        "get_entity", lambda sdk: retrieve_entity(sdk, entity_id), deadline=deadline
                    )
                except ProviderRefusal as error:
                    raise ProviderError from error
                return entity.description

        entity_ids = dict.fromkeys(account.entity_id for account in page.rows)
        owners = await gather_or_cancel(map(owner, entity_ids), name="get_entity")
        return _page(owners, page.next_cursor)


def _page(descriptions: Sequence[str | None], next_cursor: str | None) -> NewestPage:
    """Of the entities that onboarding made: the description is the customer's id."""
    ids = [each for each in descriptions if each is not None and parse_made_id(each) is not None]
    return NewestPage(ids, next_cursor)
