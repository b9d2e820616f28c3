"""Adding an external bank account: it becomes the primary one, the old one stays linked."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import PENDING_REVIEW, application, bank_account
from tests.support.waiting import eventually


def path(external_bank_account_id: str) -> str:
    return f"{CUSTOMERS}/external_bank_account/{external_bank_account_id}"


def wrapped(account: dict[str, Any]) -> dict[str, Any]:
    return {"external_bank_account": account}


async def linked(live: Live, customer_id: str, *accounts: dict[str, Any]) -> dict[str, bool]:
    """By their ids, whether they are primary: all that the bank has, which are these.

    Which one is primary is compared with what onboarding shows, where the bank knows it.
    """
    rows = await live.bank.linked(customer_id, [one["account_number"] for one in accounts])
    listed = (await live.customer(customer_id))["external_bank_accounts"]
    shown = {one["external_bank_account_id"]: one["primary"] for one in listed}
    at_bank = {row["external_account_id"]: row.get("primary") for row in rows}
    assert len(at_bank) == len(rows)
    assert at_bank.keys() == shown.keys()
    assert all(primary in (None, shown[each]) for each, primary in at_bank.items())
    return shown


async def test_a_new_one_is_primary_and_the_old_one_stays(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    customer_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    account = bank_account(bank_name="Second Bank")

    answer = await live.partner.post(path(old), wrapped(account))

    new = answer.data["external_bank_account_id"]
    assert new != old
    found = await linked(live, customer_id, body["external_bank_account"], account)
    assert found == {new: True, old: False}
    read = await live.partner.get(f"{ACCOUNTS}/external/{data['business']['account_id']}")
    assert read.data["external_account_id"] == new
    assert read.data["external_account_number"] == account["account_number"]
    assert read.data["external_institution_name"] == "Second Bank"
    customer = await live.of_customer(customer_id)
    listed = (await customer.get("/customer/external-accounts")).data
    assert [(a["external_account_id"], a["primary"]) for a in listed] == [(new, True), (old, False)]

    async def told() -> bool:
        events = await live.events.of(customer_id)
        created = [e["data"] for e in events if e["type"] == "external_account.created"]
        assert [e["external_account_id"] for e in created] == [old, new]
        assert {len(e["account_number"]) for e in created} == {4}
        return any(e["type"] == "external_account.primary_changed" for e in events)

    await eventually("the new account and the change were told", told)


async def test_any_current_one_says_whose_it_is(live: Live) -> None:
    body = application()
    more = [bank_account() for _ in range(3)]
    data = await live.onboarded(body)
    first = data["external_bank_account"]["external_bank_account_id"]
    second = (await live.partner.post(path(first), wrapped(more[0]))).data

    third = await live.partner.post(path(first), wrapped(more[1]))
    fourth = await live.partner.post(path(second["external_bank_account_id"]), wrapped(more[2]))

    assert (third.status, fourth.status) == (200, 200)
    customer_id = data["business"]["customer_id"]
    found = await linked(live, customer_id, body["external_bank_account"], *more)
    assert len(found) == 4
    primary = [each for each, is_primary in found.items() if is_primary]
    assert primary == [fourth.data["external_bank_account_id"]]


async def test_a_linked_one_is_not_linked_again(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    old = data["external_bank_account"]["external_bank_account_id"]
    account = bank_account()
    assert (await live.partner.post(path(old), wrapped(account))).status == 200

    again = await live.partner.post(path(old), wrapped(account))
    first_again = await live.partner.post(path(old), wrapped(body["external_bank_account"]))
    same_number = await live.partner.post(
        path(old), wrapped(account | {"routing_number": "011401533"})
    )

    assert (again.status, again.code) == (409, "already_exists")
    assert (first_again.status, first_again.code) == (409, "already_exists")
    assert same_number.status == 200, "another bank's account of the same number"
    accounts = (body["external_bank_account"], account)
    assert len(await linked(live, data["business"]["customer_id"], *accounts)) == 3


async def test_the_same_one_sent_twice_at_once_is_linked_once(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    old = data["external_bank_account"]["external_bank_account_id"]
    account = bank_account()

    answers = await asyncio.gather(
        *(live.partner.post(path(old), wrapped(account)) for _ in range(4))
    )

    assert sorted(answer.code for answer in answers) == ["200"] + ["already_exists"] * 3
    accounts = (body["external_bank_account"], account)
    assert len(await linked(live, data["business"]["customer_id"], *accounts)) == 2


async def test_several_at_once_leave_one_primary(live: Live) -> None:
    body, more = application(), [bank_account() for _ in range(5)]
    data = await live.onboarded(body)
    customer_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]

    answers = await asyncio.gather(
        *(live.partner.post(path(old), wrapped(account)) for account in more)
    )

    assert {answer.status for answer in answers} == {200}
    found = await linked(live, customer_id, body["external_bank_account"], *more)
    assert (len(found), list(found.values()).count(True)) == (6, 1)


async def test_an_unknown_id_is_not_found(live: Live) -> None:
    for unknown in (str(uuid.uuid4()), "ext_nothing", "%F0%9F%92%B0"):
        answer = await live.partner.post(path(unknown), wrapped(bank_account()))

        assert (answer.status, answer.code) == (404, "not_found")


async def test_the_same_account_of_two_businesses(live: Live) -> None:
    account = bank_account()

    first = await live.onboarded(application(external_bank_account=account))
    second = await live.onboarded(application(external_bank_account=account))

    assert first["external_bank_account"] != second["external_bank_account"]


async def test_before_approval_there_is_none_to_name(live: Live) -> None:
    data = (await live.partner.post(CUSTOMERS, application(PENDING_REVIEW))).data

    assert data["external_bank_account"] == {"external_bank_account_id": None}
    shown = await live.customer(data["business"]["customer_id"])
    assert all("account_number" in a for a in shown["external_bank_accounts"])
