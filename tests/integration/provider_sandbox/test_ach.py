from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.provider_sandbox.bank import Bank, external_account
from tests.integration.provider_sandbox.books import balance, events_of, listed, transacted


async def requested(bank: Bank, account_id: str, amount: str = "40.00") -> Any:
    reply = await bank.simulate("ach", {"account_id": account_id, "amount": amount})
    assert reply.status == 200, reply
    return reply.body


async def act(bank: Bank, reference_id: str, *actions: str) -> None:
    for action in actions:
        body = {"return_code": "R03"} if action == "return" else {}
        reply = await bank.simulate(f"ach/{reference_id}/{action}", body)
        assert reply.status == 200, reply


async def test_a_request_holds_then_debits_and_a_return_credits_anew(bank: Bank) -> None:
    opened = await bank.open_account()
    await bank.done("/core/external-accounts", external_account(opened.core_id, "123456"))
    await transacted(bank, opened.account_id, "100")
    reference = (await requested(bank, opened.account_id))["reference_id"]
    balances = [await balance(bank, opened.account_id)]

    for action in ("submit", "settle", "return"):
        await act(bank, reference, action)
        balances.append(await balance(bank, opened.account_id))

    assert [tuple(b.values()) for b in balances] == [
        ("100.00", "0.00", "100.00"),
        ("60.00", "40.00", "100.00"),
        ("60.00", "0.00", "60.00"),
        ("100.00", "0.00", "100.00"),
    ]
    page = await listed(bank, opened.account_id, "transactions")
    assert [(t["type"], t["direction"], t["amount"]) for t in page["transactions"]] == [
        ("return", "credit", "40.00"),
        ("ach", "debit", "40.00"),
        ("deposit", "credit", "100.00"),
    ]
    assert page["transactions"][0]["counterparty_name"] == "Acme"
    [request] = (await listed(bank, opened.account_id, "ach"))["ach_requests"]
    assert (request["status"], request["amount"]) == ("returned", "40.00")
    assert request["return_code"] == "R03"
    assert request["return_description"] == "No Account/Unable to Locate Account"
    assert request["originating_account_id"] == opened.account_id
    assert request["updated_at"] > request["created_at"]
    told = await events_of(bank, opened.account_id)
    assert [kind for kind, _ in told] == [
        "account.opened",
        "transaction.created",
        "ach.created",
        "ach.submitted",
        "transaction.created",
        "ach.settled",
        "transaction.created",
        "ach.returned",
    ]
    assert told[-1][1] == request


async def test_the_return_of_what_was_not_settled_ends_the_hold_alone(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "40")
    reference = (await requested(bank, opened.account_id))["reference_id"]

    await act(bank, reference, "submit", "return")

    assert tuple((await balance(bank, opened.account_id)).values()) == ("40.00", "0.00", "40.00")
    assert (await listed(bank, opened.account_id, "transactions"))["total"] == 1


@pytest.mark.parametrize(
    ("done", "refused"),
    [
        ((), ("settle", "return")),
        (("submit",), ("submit",)),
        (("submit", "settle"), ("submit", "settle")),
        (("submit", "settle", "return"), ("submit", "settle", "return")),
        (("submit", "return"), ("submit", "settle", "return")),
    ],
    ids=str,
)
async def test_an_ach_request_refuses_a_step_its_state_does_not_allow(
    bank: Bank, done: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "40")
    reference = (await requested(bank, opened.account_id))["reference_id"]
    await act(bank, reference, *done)
    before = await balance(bank, opened.account_id)

    for action in refused:
        body = {"return_code": "R01"} if action == "return" else {}
        reply = await bank.simulate(f"ach/{reference}/{action}", body)
        assert (reply.status, reply.code) == (409, "invalid_state")

    assert await balance(bank, opened.account_id) == before


async def test_an_ach_request_is_refused_where_money_must_not_or_cannot_leave(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "39.99")
    reference = (await requested(bank, opened.account_id))["reference_id"]

    no_funds = await bank.simulate(f"ach/{reference}/submit")
    unknown = await bank.simulate("ach/ach_none/submit")
    no_code = await bank.simulate(f"ach/{reference}/return", {"return_code": "R99"})
    await bank.simulate(f"accounts/{opened.account_id}/restrict")
    restricted = await bank.simulate(f"ach/{reference}/submit")
    new = await bank.simulate("ach", {"account_id": opened.account_id, "amount": "1"})

    assert (no_funds.status, no_funds.code) == (409, "insufficient_funds")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert (no_code.status, no_code.code) == (422, "invalid")
    assert (restricted.status, restricted.code) == (409, "account_restricted")
    assert (new.status, new.code) == (409, "account_restricted")


async def test_requests_at_once_never_hold_more_than_there_is(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "100")
    requests = [await requested(bank, opened.account_id) for _ in range(5)]

    replies = await asyncio.gather(
        *(bank.simulate(f"ach/{request['reference_id']}/submit") for request in requests)
    )

    assert sorted(reply.status for reply in replies) == [200, 200, 409, 409, 409]
    assert (await balance(bank, opened.account_id))["available"] == "20.00"


async def test_requests_are_listed_newest_first_in_pages_and_found_by_reference(bank: Bank) -> None:
    opened, other = await bank.open_account(), await bank.open_account()
    references = [(await requested(bank, opened.account_id))["reference_id"] for _ in range(5)]
    await requested(bank, other.account_id)

    read: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await listed(bank, opened.account_id, "ach", limit=2, **cursor)
        read += [request["reference_id"] for request in page["ach_requests"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    one = await listed(bank, opened.account_id, "ach", reference_id=references[2])
    none = await listed(bank, other.account_id, "ach", reference_id=references[2])
    wrong = await bank.get(f"/financial/accounts/{opened.account_id}/ach", cursor="1")

    assert read == references[::-1]
    assert [request["reference_id"] for request in one["ach_requests"]] == [references[2]]
    assert none == {"ach_requests": [], "next_cursor": None}
    assert (wrong.status, wrong.code) == (400, "invalid")
