"""Linked external accounts as reconciliation is told of them: page by page, and by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import FindByIds, FindCustomers, PageAfter
from tests.integration.onboarding.desk import Desk, application, bank_account

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_each_linked_external_account_is_in_one_page_and_found_by_its_id(desk: Desk) -> None:
    bank = bank_account()
    onboarded = [await desk.onboard(application(external_bank_account=bank)) for _ in range(2)]
    linked = {
        one["external_bank_account"]["external_bank_account_id"]: one["business"]["customer_id"]
        for one in onboarded
    }

    paged = await _paged(desk)
    command = FindByIds(ids=[*linked, "unknown"])
    reply = await desk.ask(table.FIND_RECORDED_EXTERNAL_ACCOUNTS, command, SERVICE)
    found = reply["data"]["external_accounts"]

    ids = [one["external_account_id"] for one in paged]
    assert ids == sorted(set(ids))
    assert {one["external_account_id"]: one["customer_id"] for one in found} == linked
    assert all(one in paged for one in found)
    assert {(one["routing_number"], one["account_number"]) for one in found} == {
        (bank["routing_number"], bank["account_number"])
    }
    assert all(one["primary"] for one in found)


async def test_a_customer_is_told_without_them_unless_they_are_asked_for(desk: Desk) -> None:
    onboarded = await desk.onboard(application())
    [customer_id] = ids = [onboarded["business"]["customer_id"]]
    linked = onboarded["external_bank_account"]["external_bank_account_id"]

    asked_for, not_asked_for = [
        (await desk.ask(table.FIND_RECORDED_CUSTOMERS, command, SERVICE))["data"]["customers"]
        for command in (FindCustomers(ids=ids), FindCustomers(ids=ids, external_accounts=False))
    ]

    [account] = asked_for[0]["external_accounts"]
    assert (account["external_account_id"], account["customer_id"]) == (linked, customer_id)
    assert not_asked_for[0]["external_accounts"] == []


async def _paged(desk: Desk) -> list[dict[str, Any]]:
    paged: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        command = PageAfter(after=after, limit=1)
        reply = await desk.ask(table.PAGE_RECORDED_EXTERNAL_ACCOUNTS, command, SERVICE)
        rows, after = reply["data"]["external_accounts"], reply["data"]["next_after"]
        assert len(rows) <= 1
        paged += rows
        if after is None:
            return paged
