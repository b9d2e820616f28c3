"""Increase's ACH transfers as requests: read by the fields that are used."""

from __future__ import annotations

from typing import Any

import pytest

from libs.contracts.ach import AchRequest, ListAchRequests
from libs.contracts.errors import ProviderError
from libs.providers.increase.client import IncreaseClient
from services.ledger_read.adapters.increase.ach_transfers import retrieve_ach_transfer
from services.ledger_read.adapters.increase.ledger import IncreaseLedger, to_ach_request
from services.ledger_read.adapters.increase.reading import Reader
from tests.unit.ledger_read.fakes import NoLoads
from tests.unit.providers.conftest import Provider, provider, session, soon
from tests.unit.providers.increase.conftest import increase, shows

__all__ = ["increase", "provider", "session"]

TRANSFER: dict[str, Any] = {
    "id": "ach_transfer_1",
    "account_id": "account_1",
    "amount": -1050,
    "created_at": "2026-03-02T15:00:00Z",
    "funding": "of_a_later_release",
    "notifications_of_change": [{"change_code": "of_a_later_release"}],
    "return": {
        "created_at": "2026-03-04T15:00:00Z",
        "raw_return_reason_code": "R99",
        "return_reason_code": "of_a_later_release",
    },
    "settlement": {"settled_at": "2026-03-03T15:00:00Z"},
    "standard_entry_class_code": "of_a_later_release",
    "status": "returned",
    "submission": {
        "expected_settlement_schedule": "of_a_later_release",
        "submitted_at": "2026-03-02T16:00:00Z",
    },
}


async def read(client: IncreaseClient) -> AchRequest:
    transfer = await client.read(
        "get_ach", lambda sdk: retrieve_ach_transfer(sdk, "ach_transfer_1"), deadline=soon()
    )
    return to_ach_request(transfer)


async def test_a_code_of_a_later_release_keeps_no_transfer_from_being_read(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [shows(TRANSFER)]

    request = await read(increase)

    assert (request.status, request.amount) == ("returned", "10.50")
    assert (request.return_code, request.return_description) == ("R99", "Of a later release")
    assert request.updated_at.isoformat() == "2026-03-04T15:00:00+00:00"


@pytest.mark.parametrize(
    ("missing", "status"),
    [
        ((), "returned"),
        (("return",), "settled"),
        (("return", "settlement"), "submitted"),
        (("return", "settlement", "submission"), "pending"),
    ],
)
async def test_in_a_status_that_increase_has_added_a_transfer_is_as_far_as_its_moments_say(
    provider: Provider, increase: IncreaseClient, missing: tuple[str, ...], status: str
) -> None:
    """Whether it has ended is not known."""
    nothing = dict.fromkeys(missing)
    provider.answers = [shows(TRANSFER | nothing | {"status": "of_a_later_release"})]

    request = await read(increase)

    assert (request.status, request.return_code) == (status, None if missing else "R99")


@pytest.mark.parametrize("changed", [{"status": None}, {"amount": None}])
async def test_a_transfer_without_a_value_that_is_used_is_not_read(
    provider: Provider, increase: IncreaseClient, changed: dict[str, Any]
) -> None:
    provider.answers = [shows(TRANSFER | changed)]

    with pytest.raises(ProviderError):
        await read(increase)


async def test_requests_of_one_second_are_in_the_descending_order_of_their_ids(
    provider: Provider, increase: IncreaseClient
) -> None:
    newer = TRANSFER | {"id": "ach_transfer_0", "created_at": "2026-03-02T15:00:01Z"}
    of_one_second = [TRANSFER | {"id": f"ach_transfer_{one}"} for one in "acb"]
    provider.answers = [shows({"data": [newer, *of_one_second], "next_cursor": None})]
    ledger = IncreaseLedger(Reader(increase), NoLoads())

    found = await ledger.ach_requests(ListAchRequests(account_id="account_1"), soon())

    assert [one.reference_id.removeprefix("ach_transfer_") for one in found] == [*"0cba"]
