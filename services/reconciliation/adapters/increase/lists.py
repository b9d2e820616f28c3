"""Increase's books: lists by cursor, newest first. Increase does not know our customers' ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from increase import AsyncIncrease

from libs.contracts.errors import ProviderError
from libs.contracts.ids import parse_id, parse_made_id
from libs.gathering import gather_or_cancel
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from libs.providers.increase.account_numbers import (
    LIST_NUMBERS,
    first_numbers,
    first_page,
    with_the_rest,
)
from libs.providers.increase.accounts import Account, list_accounts, retrieve_account
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.events import is_followed
from libs.providers.increase.external_accounts import (
    ARCHIVED,
    ExternalAccount,
    list_external_accounts,
    retrieve_external_account,
)
from libs.providers.increase.lists import LARGEST_PAGE, ListCall, read_page, retrieve_each
from libs.providers.increase.money import amount_of
from libs.providers.increase.wire_states import STATES
from libs.providers.increase.wires import Wire, list_wires, wires_having_key
from services.reconciliation.ports import CoreAccount, CoreExternalAccount, CoreWire, Page

CLOSED = "closed"
OPEN = "open"


class Keyed(Protocol):
    idempotency_key: str | None


ObjectT = TypeVar("ObjectT", bound=Keyed)
RowT = TypeVar("RowT")


class IncreaseList(Generic[ObjectT, RowT]):
    """See `ports.ProviderList`. Objects that were not made under a key of ours are others', and left out of pages.

    Args:
        name: of the objects, for metrics.
        listed: the list.
        found: the objects with ids, by those ids.
        rows: those of an object.
        requests_each: see `ports.ProviderList`.
    """

    def __init__(
        self,
        client: IncreaseClient,
        name: str,
        listed: ListCall[ObjectT],
        found: Callable[[Sequence[str], float], Awaitable[Sequence[RowT]]],
        rows: Callable[[ObjectT], Iterable[RowT]],
        *,
        requests_each: int = 1,
    ) -> None:
        self.requests_each = requests_each
        self._client = client
        self._name = name
        self._listed = listed
        self._found = found
        self._rows = rows

    async def page(self, after: str | None, deadline: float) -> Page[RowT]:
        page = await read_page(
            self._client, f"list_{self._name}", self._listed, after, deadline=deadline
        )
        ours = [one for one in page.rows if parse_made_id(one.idempotency_key or "") is not None]
        return Page([row for one in ours for row in self._rows(one)], page.next_cursor)

    async def by_ids(self, ids: Sequence[str], deadline: float) -> Sequence[RowT]:
        return await self._found(ids, deadline)

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> Sequence[RowT]:
        """A record that we do not hold stands under its own id (`handlers.holders`): those are found.

        Increase may change the format of its ids, which does not say what an id is of: each one that is not ours is
        asked for, also where it is that of a record of another list.
        """
        ids = [one for one in customer_ids if parse_id(one) is None]
        return await self._found(ids, deadline) if ids else []


def wires(client: IncreaseClient) -> IncreaseList[Wire, CoreWire]:
    """Their ids are our transaction ids, the keys under which they were made."""

    async def found(ids: Sequence[str], deadline: float) -> Sequence[CoreWire]:
        async def having_key(sdk: AsyncIncrease, key: str) -> Sequence[Wire]:
            return (await wires_having_key(sdk, key)).data

        made = await retrieve_each(client, "find_wire", having_key, ids, deadline=deadline)
        for key, listed in made.items():
            if any(wire.idempotency_key != key for wire in listed):
                raise ProviderError  # the list is not filtered by the key
        return [_wire(wire) for listed in made.values() for wire in listed]

    return IncreaseList(
        client,
        "wires",
        lambda sdk, cursor: list_wires(sdk, cursor, LARGEST_PAGE),
        found,
        lambda wire: [_wire(wire)],
    )


def _wire(wire: Wire) -> CoreWire:
    # A status of a later release of Increase is shown as it is: that wire differs, and the others are compared.
    state = STATES.get(wire.status)
    return CoreWire(
        transaction_id=wire.idempotency_key or "",
        state=wire.status if state is None else state.value,
        amount=amount_of(wire.amount),
        account_id=wire.account_id,
        external_account_id=wire.external_account_id or "",
        provider_id=wire.id,
    )


def accounts(client: IncreaseClient) -> IncreaseList[Account, CoreAccount]:
    """Their numbers are read with single accounts, not with a page of the list."""

    async def found(ids: Sequence[str], deadline: float) -> Sequence[CoreAccount]:
        known = await retrieve_each(
            client,
            "get_account",
            retrieve_account,
            ids,
            deadline=deadline,
        )
        numbers = await _numbers(client, known, deadline)
        return [_account(account, numbers.get(account.id, "")) for account in known.values()]

    return IncreaseList(
        client,
        "accounts",
        lambda sdk, cursor: list_accounts(sdk, cursor, LARGEST_PAGE),
        found,
        lambda account: [_account(account, None)],
        requests_each=2,
    )


async def _numbers(
    client: IncreaseClient, account_ids: Iterable[str], deadline: float
) -> Mapping[str, str]:
    """The first number that each account got, as long as it is active: the one that was made with the account."""

    first_pages = await retrieve_each(
        client, LIST_NUMBERS, first_page, account_ids, deadline=deadline
    )
    made = await gather_or_cancel(
        (
            with_the_rest(client, account_id, page, deadline=deadline)
            for account_id, page in first_pages.items()
        ),
        name=LIST_NUMBERS,
    )
    active = (number for numbers in made for number in numbers if number.status == "active")
    return {
        account_id: number.account_number for account_id, number in first_numbers(active).items()
    }


def _account(account: Account, number: str | None) -> CoreAccount:
    return CoreAccount(
        account_id=account.id,
        account_number=number,
        core_id=account.entity_id,
        customer_id="",
        status=account.status,
        made_under=account.idempotency_key,
    )


def external_accounts(client: IncreaseClient) -> IncreaseList[ExternalAccount, CoreExternalAccount]:
    async def found(ids: Sequence[str], deadline: float) -> Sequence[CoreExternalAccount]:
        known = await retrieve_each(
            client,
            "get_external_account",
            retrieve_external_account,
            ids,
            deadline=deadline,
        )
        return [_external_account(one) for one in known.values()]

    return IncreaseList(
        client,
        "external_accounts",
        lambda sdk, cursor: list_external_accounts(sdk, cursor, LARGEST_PAGE),
        found,
        lambda one: [_external_account(one)],
    )


def _external_account(account: ExternalAccount) -> CoreExternalAccount:
    return CoreExternalAccount(
        external_account_id=account.id,
        customer_id="",
        routing_number=account.routing_number,
        account_number=account.account_number,
        status=CLOSED if account.status == ARCHIVED else OPEN,
        primary=None,
        made_under=account.idempotency_key,
    )


FOLLOWED = {
    Role.IDENTITY: ("entity.updated",),
    Role.CORE: ("wire_transfer.created", "wire_transfer.updated"),
    Role.FINANCIAL: ("account.updated",),
}
"""Categories of events that each feed of the role follows. Some follow others too."""


async def newest_entry(
    client: IncreaseClient, role: Role, applied: FeedCursor, deadline: float
) -> int:
    """See `ports.NewestEntry`. Increase's events have no positions: what matters is whether any follows.

    A feed that applied none has no provider cursor that says what it follows: then an event of `FOLLOWED` counts.
    """
    return applied.position + await is_followed(client, applied.provider_cursor, FOLLOWED[role])
