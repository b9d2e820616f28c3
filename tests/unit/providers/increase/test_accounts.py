"""Accounts, their numbers and external accounts as they are read: by the fields that are used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from increase import AsyncIncrease

from libs.contracts.errors import ProviderError
from libs.providers.increase.account_numbers import first_page
from libs.providers.increase.accounts import list_accounts, retrieve_account, status_of
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.external_accounts import (
    list_external_accounts,
    retrieve_external_account,
)
from tests.unit.providers.conftest import Provider, soon
from tests.unit.providers.increase.conftest import lists, shows

ACCOUNT = {
    "id": "account_1",
    "bank": "of_a_later_release",
    "closed_at": None,
    "created_at": "2026-03-02T15:00:00Z",
    "entity_id": "entity_1",
    "funding": "of_a_later_release",
    "idempotency_key": None,
    "interest_rate": "0.01",
    "loan": {"maturity_date": "-4712-01-01"},
    "name": "Operating",
    "status": "open",
}
NUMBER = {
    "id": "account_number_1",
    "account_id": "account_1",
    "account_number": "987654321",
    "created_at": "2026-03-02T15:00:00Z",
    "inbound_ach": {"debit_status": "of_a_later_release"},
    "status": "of_a_later_release",
}
EXTERNAL = {
    "id": "external_account_1",
    "account_holder": "of_a_later_release",
    "account_number": "123456789012",
    "funding": "of_a_later_release",
    "routing_number": "021000021",
    "status": "active",
}

Read = Callable[[AsyncIncrease], Awaitable[Any]]


async def pages_read(client: IncreaseClient, read: Read) -> list[str]:
    page = await client.read("list", read, deadline=soon())
    return [row.id for row in page.data]


@pytest.mark.parametrize(
    ("shown", "retrieve", "page"),
    [
        (ACCOUNT, lambda sdk: retrieve_account(sdk, "1"), lambda sdk: list_accounts(sdk, "c", 9)),
        (
            EXTERNAL,
            lambda sdk: retrieve_external_account(sdk, "1"),
            lambda sdk: list_external_accounts(sdk, "c", 9),
        ),
        (NUMBER, None, lambda sdk: first_page(sdk, "account_1")),
    ],
)
async def test_a_value_that_is_not_used_keeps_nothing_from_being_read(
    provider: Provider,
    increase: IncreaseClient,
    shown: dict[str, Any],
    retrieve: Read | None,
    page: Read,
) -> None:
    provider.answers = [lists([shown])]
    assert await pages_read(increase, page) == [shown["id"]]

    if retrieve is not None:
        provider.answers = [shows(shown)]
        assert (await increase.read("get", retrieve, deadline=soon())).id == shown["id"]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"status": "open"}, "open"),
        ({"status": "closed"}, "closed"),
        ({"status": "of_a_later_release"}, "open"),
        ({"status": "of_a_later_release", "closed_at": "2026-03-02T15:00:00Z"}, "closed"),
    ],
)
async def test_in_a_status_that_increase_has_added_an_account_is_open_until_it_was_closed(
    provider: Provider, increase: IncreaseClient, changed: dict[str, Any], status: str
) -> None:
    provider.answers = [shows(ACCOUNT | changed)]

    account = await increase.read("get", lambda sdk: retrieve_account(sdk, "1"), deadline=soon())

    assert status_of(account) == status


@pytest.mark.parametrize(
    ("shown", "page"),
    [
        (ACCOUNT | {"status": None}, lambda sdk: list_accounts(sdk, "c", 9)),
        (ACCOUNT | {"entity_id": None}, lambda sdk: list_accounts(sdk, "c", 9)),
        (NUMBER | {"status": None}, lambda sdk: first_page(sdk, "account_1")),
        (NUMBER | {"account_number": None}, lambda sdk: first_page(sdk, "account_1")),
        (EXTERNAL | {"status": None}, lambda sdk: list_external_accounts(sdk, "c", 9)),
        (EXTERNAL | {"routing_number": None}, lambda sdk: list_external_accounts(sdk, "c", 9)),
    ],
)
async def test_what_lacks_a_value_that_is_used_is_not_read(
    provider: Provider, increase: IncreaseClient, shown: dict[str, Any], page: Read
) -> None:
    provider.answers = [lists([shown])]

    with pytest.raises(ProviderError):
        await pages_read(increase, page)
