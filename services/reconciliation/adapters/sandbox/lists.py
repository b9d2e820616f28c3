"""The sandbox's books: paged lists over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FeedCursor
from libs.providers.sandbox.http import ProviderClient, segment
from services.reconciliation.adapters.chunks import chunks
from services.reconciliation.ports import DepositLoad, Page, Posting

LARGEST_PAGE = 500
LOCATIONS_PAGE = 100

RowT = TypeVar("RowT", bound=msgspec.Struct)

Params = tuple[tuple[str, str], ...]


class SandboxList(Generic[RowT]):
    """One list of one provider. See `ports.ProviderList`.

    Args:
        path: of the list.
        rows: the member of the answer that holds the rows.
        page_size: rows in a page at most.
    """

    requests_each = 0

    def __init__(
        self,
        client: ProviderClient,
        path: str,
        rows: str,
        row: type[RowT],
        *,
        page_size: int = LARGEST_PAGE,
    ) -> None:
        self._client = client
        self._path = path
        self._rows = rows
        self._row = row
        self._page_size = page_size

    async def page(self, after: str | None, deadline: float) -> Page[RowT]:
        return await self._read((), after, deadline)

    async def by_ids(self, ids: Sequence[str], deadline: float) -> list[RowT]:
        return await self._all("id", ids, deadline)

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> list[RowT]:
        return await self._all("customer_id", customer_ids, deadline)

    async def _all(self, name: str, ids: Sequence[str], deadline: float) -> list[RowT]:
        found: list[RowT] = []
        for chunk in chunks(ids):
            chosen = tuple((name, one) for one in chunk)
            page = await self._read(chosen, None, deadline)
            found += page.rows
            while page.next_after is not None:
                page = await self._read(chosen, page.next_after, deadline)
                found += page.rows
        return found

    async def _read(self, chosen: Params, after: str | None, deadline: float) -> Page[RowT]:
        params = (*chosen, ("after", after or "0"), ("limit", str(self._page_size)))
        answer = await _read(self._client, f"list_{self._rows}", self._path, params, deadline)
        try:
            rows = [msgspec.convert(row, self._row, strict=False) for row in answer[self._rows]]
            following = answer["next"]
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            raise ProviderError from error
        if following is not None and int(following) <= int(after or 0):
            raise ProviderError  # a list that does not advance would be read without end
        return Page(rows, None if following is None else str(following))


class SandboxFinancial:
    """See `ports.Financial`."""

    def __init__(self, client: ProviderClient, *, page_size: int = LARGEST_PAGE) -> None:
        self._client = client
        self._postings = SandboxList(client, "/postings", "postings", Posting, page_size=page_size)
        self._loads = SandboxList(
            client, "/deposit-loads", "loads", DepositLoad, page_size=page_size
        )

    async def postings_after(self, position: int, deadline: float) -> Sequence[Posting]:
        return (await self._postings.page(str(position), deadline)).rows

    async def loads_after(self, position: int, deadline: float) -> Sequence[DepositLoad]:
        return (await self._loads.page(str(position), deadline)).rows

    async def location_total(
        self, account_id: str, load_date: str, deadline: float
    ) -> tuple[int, Decimal]:
        path = f"/accounts/{segment(account_id)}/deposit-locations"
        balances: list[Decimal] = []
        page = 1
        while True:
            params = (
                ("load_date", load_date),
                ("page", str(page)),
                ("limit", str(LOCATIONS_PAGE)),
            )
            answer = await _read(self._client, "list_deposit_locations", path, params, deadline)
            try:
                found = [Decimal(str(item["balance"])) for item in answer["locations"]]
                total = int(answer["total"])
            except (KeyError, TypeError, ArithmeticError, ValueError) as error:
                raise ProviderError from error
            balances += found
            if not found or len(balances) >= total:
                return len(balances), sum(balances, Decimal(0))
            page += 1


async def newest_entry(client: ProviderClient, _: FeedCursor, deadline: float) -> int:
    """See `ports.NewestEntry`."""
    answer = await _read(client, "get_newest_event", "/events/newest", (), deadline)
    try:
        return int(answer["position"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProviderError from error


async def _read(
    client: ProviderClient, operation: str, path: str, params: Params, deadline: float
) -> Any:
    """Raises ProviderTimeout, ProviderError, Unavailable."""
    try:
        return await client.read(operation, path, params, deadline=deadline)
    except ProviderRefusal as error:
        raise ProviderError from error
