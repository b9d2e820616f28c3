"""What no wire is made of: the decided answer each, and no row at the bank."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.wires.hands import WIRES, Sender, new_sender
from tests.support.api import Answer
from tests.support.live import CUSTOMERS, Live
from tests.support.people import bank_account
from tests.support.waiting import eventually


@contextlib.asynccontextmanager
async def nothing_happens(sender: Sender) -> AsyncIterator[None]:
    """At the bank: no wire of this sender's, no posting."""
    wires, postings = await sender.at_bank(), await sender.posted()
    yield
    assert (await sender.at_bank()).keys() == wires.keys()
    assert await sender.posted() == postings


def wrong(answer: Answer) -> tuple[int, list[tuple[list[str], str]]]:
    return answer.status, [(item["loc"], item["type"]) for item in answer.body["detail"]]


@pytest.fixture
async def settled(sender: Sender) -> Sender:
    """Whose earlier wires have all been settled, so that nothing is posted by itself."""

    async def all_final() -> bool:
        return "submitted" not in (await sender.at_bank()).values()

    await eventually("earlier wires are settled", all_final)
    return sender


async def test_what_is_no_wire_is_refused_with_what_is_wrong_about_it(settled: Sender) -> None:
    kinds = {
        "0": "greater_than",
        "-1": "greater_than",
        "1.001": "decimal_max_places",
        '"12"': "decimal_type",
        "true": "decimal_type",
        "10000000000": "less_than_equal",
    }

    async with nothing_happens(settled):
        answers = {amount: await settled.send(amount) for amount in kinds}
        nan = await settled.send("NaN")
        longer = await settled.send(purpose="p" * 141)

    for amount, kind in kinds.items():
        assert wrong(answers[amount]) == (422, [(["body", "amount"], kind)]), amount
    assert (nan.status, nan.code) == (400, "malformed_json")
    assert wrong(longer) == (422, [(["body", "purpose"], "string_too_long")])


async def test_1e3_is_a_thousand_dollars(sender: Sender) -> None:
    transaction_id = (await sender.send("1e3")).data["transaction_id"]

    rows = await sender.live.bank.wires(sender.account_id)
    amounts = {row["transaction_id"]: row["amount"] for row in rows}
    assert amounts[transaction_id] == "1000.00"
    assert (await sender.wire(transaction_id))["amount"] == 1000


async def test_accounts_of_others_and_accounts_of_nobody_are_the_same_to_a_sender(
    settled: Sender, others: list[Sender]
) -> None:
    before = await settled.total()
    accounts = [other.account_id for other in others]
    externals = [other.external_account_id for other in others]

    async with nothing_happens(settled), nothing_happens(others[0]), nothing_happens(others[1]):
        from_accounts = [
            await settled.send(sending_account_id=one) for one in [*accounts, "acc_nobody"]
        ]
        to_externals = [
            await settled.send(external_account_id=one) for one in [*externals, "ext_nobody"]
        ]

    for told, expected in (
        (from_accounts, (404, "not_found")),
        (to_externals, (409, "external_account_not_linked")),
    ):
        assert [(answer.status, answer.code) for answer in told] == [expected] * 3
        assert "`sending_account_id`" in told[0].body["detail"] or told is to_externals
        problems = [{**answer.body, "request_id": None} for answer in told]
        assert problems[0] == problems[1] == problems[2]
    assert await settled.total() == before, "they are not even wires that were rejected"


async def test_an_external_account_that_the_bank_has_unlinked_since_is_not_linked(
    settled: Sender,
) -> None:
    live = settled.live
    body = {"external_bank_account": bank_account()}
    target = f"{CUSTOMERS}/external_bank_account/{settled.external_account_id}"
    linked = (await live.partner.post(target, body)).data["external_bank_account_id"]
    assert (await settled.send("1.66", external_account_id=linked)).status == 200
    tokens = live.stack.environment.secrets.provider_tokens
    await live.bank.unlink(linked, tokens["onboarding"]["core"])

    async with nothing_happens(settled):
        answer = await settled.send(external_account_id=linked)

    assert (answer.status, answer.code) == (409, "external_account_not_linked")
    assert (await settled.send("1.66")).status == 200, "the other one still is"


async def refused_once(sender: Sender, answer: Answer, code: str) -> None:
    """Told as a conflict, and kept as a wire that was rejected for that reason."""
    assert (answer.status, answer.code) == (409, code)
    (newest,) = (await sender.api.get(f"{WIRES}?limit=1")).data
    assert answer.body["transaction_id"] == newest["transaction_id"]
    assert (newest["state"], newest["reason"]) == ("rejected", code)
    assert [step["state"] for step in newest["history"]] == ["pending_submission", "rejected"]
    await sender.has_told([newest["transaction_id"]], "created", "rejected")


async def test_a_restricted_account_sends_nothing_until_it_is_unrestricted(settled: Sender) -> None:
    await settled.live.bank.change(settled.account_id, "restrict")

    async with nothing_happens(settled):
        answer = await settled.send()
    await settled.live.bank.change(settled.account_id, "unrestrict")

    await refused_once(settled, answer, "account_restricted")
    assert (await settled.send("1.66")).status == 200


async def test_a_cent_more_than_there_is_is_refused_and_all_there_is_is_sent(live: Live) -> None:
    sender = await new_sender(live, "50.66")

    async with nothing_happens(sender):
        answer = await sender.send("50.67")

    await refused_once(sender, answer, "insufficient_funds")
    assert (await sender.send("50.66")).status == 200


async def test_a_closed_account_sends_nothing(settled: Sender, live: Live) -> None:
    live.bank.needs("has_reserves")
    made: Any = await live.bank.simulate(f"accounts/{settled.account_id}/reserve")
    reserve = made["account_id"]
    await live.bank.change(reserve, "close")

    async def known() -> Answer | None:
        """It was opened without us: onboarding has to hear of it."""
        answer = await settled.send(sending_account_id=reserve)
        return answer if answer.status != 404 else None

    async with nothing_happens(settled):
        answer = await eventually("the account is the customer's", known)

    await refused_once(settled, answer, "account_closed")
    assert await live.bank.wires(reserve) == []
