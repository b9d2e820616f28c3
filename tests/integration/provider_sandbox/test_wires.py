from __future__ import annotations

import asyncio
import re

import asyncpg
import pytest

from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.books import balance, events_of, listed
from tests.integration.provider_sandbox.wires import (
    Sender,
    act,
    assert_books_agree,
    new_id,
    news_of,
    open_sender,
    send,
    sent,
)


async def test_a_wire_is_held_then_debited_under_the_senders_own_id(bank: Bank) -> None:
    sender, key = await open_sender(bank), new_id()

    accepted = await send(bank, sender, "40.00", key)
    holding = await balance(bank, sender.account_id)
    pending = await bank.get(f"/core/wires/{key}")
    known = await bank.wire_operation(key)
    completed = await act(bank, key, "complete")

    body = {
        "transaction_id": key,
        "state": "submitted",
        "amount": "40.00",
        "account_id": sender.account_id,
        "external_account_id": sender.external_account_id,
    }
    assert (accepted.status, accepted.body) == (200, body)
    assert known.body == {"operation": "send_wire", "status": 200, "body": body}
    assert holding == {"available": "60.00", "held": "40.00", "total": "100.00"}
    wire = body | {"reason": None}
    assert pending.body == wire
    assert completed.body == wire | {"state": "completed"}
    assert await balance(bank, sender.account_id) == {
        "available": "60.00",
        "held": "0.00",
        "total": "60.00",
    }
    [debit] = (await listed(bank, sender.account_id, "transactions", transaction_id=key))[
        "transactions"
    ]
    assert (debit["type"], debit["direction"], debit["amount"]) == ("wire", "debit", "40.00")
    assert debit["counterparty_name"] == "Acme, First Bank"
    assert (await events_of(bank, sender.account_id))[-1] == ("transaction.created", debit)
    entries = await news_of(bank, sender.account_id)
    assert [entry["type"] for entry in entries] == ["wire.submitted", "wire.completed"]
    for entry in entries:
        assert set(entry) == {
            "position",
            "type",
            "transaction_id",
            "account_id",
            "occurred_at",
            "reason",
        }
        assert (entry["transaction_id"], entry["reason"]) == (key, None)
    await assert_books_agree(bank, sender, "100.00")


async def test_a_rejected_wire_gives_its_funds_free_and_a_returned_one_brings_them_back(
    bank: Bank,
) -> None:
    sender = await open_sender(bank)
    rejected, returned = await sent(bank, sender, "40"), await sent(bank, sender, "0.6")

    rejection = await act(bank, rejected, "reject", reason="No such account.")
    await act(bank, returned, "complete")
    sending_back = await act(bank, returned, "return")

    assert (rejection.body["state"], rejection.body["reason"]) == ("rejected", "No such account.")
    assert (sending_back.body["state"], sending_back.body["amount"]) == ("returned", "0.60")
    assert await balance(bank, sender.account_id) == {
        "available": "100.00",
        "held": "0.00",
        "total": "100.00",
    }
    page = (await listed(bank, sender.account_id, "transactions"))["transactions"]
    assert [(t["type"], t["direction"], t["amount"]) for t in page] == [
        ("return", "credit", "0.60"),
        ("wire", "debit", "0.60"),
        ("deposit", "credit", "100.00"),
    ]
    assert page[0]["transaction_id"] != page[1]["transaction_id"] == returned
    reasons = {e["type"]: e["reason"] for e in await news_of(bank, sender.account_id)}
    assert reasons["wire.rejected"] == "No such account."
    assert reasons["wire.returned"] == sending_back.body["reason"] is not None
    await assert_books_agree(bank, sender, "100.00")


@pytest.mark.parametrize(
    ("done", "refused"),
    [
        ((), ("return",)),
        (("complete",), ("complete", "reject")),
        (("reject",), ("complete", "reject", "return")),
        (("complete", "return"), ("complete", "reject", "return")),
    ],
    ids=str,
)
async def test_a_wire_refuses_a_step_its_state_does_not_allow(
    bank: Bank, done: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    sender = await open_sender(bank)
    wire = await sent(bank, sender, "40")
    for action in done:
        assert (await act(bank, wire, action)).status == 200

    replies = [await act(bank, wire, action) for action in refused]

    assert {(reply.status, reply.code) for reply in replies} == {(409, "invalid_state")}
    await assert_books_agree(bank, sender, "100.00")


async def test_an_unknown_wire_is_not_found(bank: Bank) -> None:
    replies = [await act(bank, new_id(), action) for action in ("complete", "reject", "return")]
    replies.append(await bank.get(f"/core/wires/{new_id()}"))

    assert {(reply.status, reply.code) for reply in replies} == {(404, "not_found")}
    assert await bank.truth("wires", account_id="acc_none") == []


async def test_what_is_wrong_first_is_what_the_bank_says(bank: Bank) -> None:
    sender, stranger = await open_sender(bank), await open_sender(bank, None)
    foreign = {"external_account_id": stranger.external_account_id}
    account = f"accounts/{sender.account_id}"

    async def refusal(**more: object) -> tuple[int, str]:
        key = new_id()
        reply = await send(bank, sender, "100.01", key, **more)
        again = await send(bank, sender, "100.01", key, **more)
        asked = await bank.wire_operation(key)
        assert (again.body, again.replayed) == (reply.body, True)
        assert (asked.body["status"], asked.body["body"]) == (reply.status, reply.body)
        assert (await bank.get(f"/core/wires/{key}")).status == 404
        return reply.status, reply.code

    no_funds = await refusal()
    not_linked = await refusal(**foreign)
    await bank.simulate(f"{account}/restrict")
    restricted = await refusal(**foreign)
    await bank.simulate(f"{account}/close")
    closed = await refusal(**foreign)
    unknown = await refusal(account_id="acc_none", **foreign)

    assert no_funds == (409, "insufficient_funds")
    assert not_linked == (409, "external_account_not_linked")
    assert restricted == (409, "account_restricted")
    assert closed == (409, "account_closed")
    assert unknown == (404, "not_found")
    assert await bank.truth("wires", account_id=sender.account_id) == []
    assert await news_of(bank, sender.account_id) == []
    assert (await balance(bank, sender.account_id))["held"] == "0.00"


async def test_an_external_account_that_was_closed_is_linked_no_more(bank: Bank) -> None:
    sender = await open_sender(bank)
    before = await sent(bank, sender, "1.00")
    await bank.done(f"/core/external-accounts/{sender.external_account_id}/close", {})

    after = await send(bank, sender, "1.00")
    completed = await act(bank, before, "complete")

    assert (after.status, after.code) == (409, "external_account_not_linked")
    assert completed.status == 200


@pytest.mark.parametrize(
    "amount",
    ["0", "0.00", "-1", "1.001", 12, 12.5, True, None, "1e3", "NaN", "", " 1", "\uff11", "1" * 17],
    ids=repr,
)
async def test_no_other_amount_than_a_decimal_string_is_sent(bank: Bank, amount: object) -> None:
    sender = await open_sender(bank)

    reply = await send(bank, sender, amount)

    assert (reply.status, reply.code) == (400, "malformed")
    assert await bank.truth("wires", account_id=sender.account_id) == []


@pytest.mark.parametrize(
    "key",
    [
        "01978f3e5b7c7a11aa3e0c5f6d2b9e44",
        "01978F3E-5B7C-7A11-AA3E-0C5F6D2B9E44",
        "01978f3e-5b7c-7a11-aa3e-0c5f6d2b9e4",
        "wire-1",
    ],
)
async def test_the_key_is_a_uuid_in_its_usual_form(bank: Bank, key: str) -> None:
    sender = await open_sender(bank)

    reply = await send(bank, sender, "1.00", key)

    assert (reply.status, reply.code) == (400, "malformed")
    assert await bank.truth("wires", account_id=sender.account_id) == []


@pytest.mark.parametrize("decree", ["close", "restrict"])
async def test_what_was_accepted_is_completed_whatever_became_of_the_account(
    bank: Bank, decree: str
) -> None:
    sender = await open_sender(bank)
    completed, returned = await sent(bank, sender, "40.00"), await sent(bank, sender, "5.00")
    refused = await bank.write(f"/core/accounts/{sender.account_id}/close", {})
    await bank.simulate(f"accounts/{sender.account_id}/{decree}")

    replies = [
        await act(bank, completed, "complete"),
        await act(bank, returned, "complete"),
        await act(bank, returned, "return"),
    ]

    assert (refused.status, refused.code) == (409, "balance_not_zero")
    assert [reply.status for reply in replies] == [200, 200, 200]
    await assert_books_agree(bank, sender, "100.00")


async def test_fifty_equal_requests_at_once_send_one_wire(bank: Bank) -> None:
    sender, key = await open_sender(bank), new_id()

    replies = await asyncio.gather(*(send(bank, sender, "40.00", key) for _ in range(50)))
    other_body = await send(bank, sender, "41.00", key)
    other_operation = await bank.write(f"/core/accounts/{sender.account_id}/close", {}, key=key)

    assert {(reply.status, reply.body["state"]) for reply in replies} == {(200, "submitted")}
    assert sorted(reply.replayed for reply in replies) == [False] + [True] * 49
    assert (other_body.status, other_body.code) == (409, "idempotency_key_reused")
    assert (other_operation.status, other_operation.code) == (409, "idempotency_key_reused")
    assert len(await bank.truth("wires", account_id=sender.account_id)) == 1
    await assert_books_agree(bank, sender, "100.00")


async def test_of_two_bodies_with_one_key_at_once_one_is_sent(bank: Bank) -> None:
    sender, key = await open_sender(bank), new_id()

    replies = await asyncio.gather(
        *(send(bank, sender, f"{1 + number % 2}.00", key) for number in range(20))
    )

    assert sorted(reply.status for reply in replies) == [200] * 10 + [409] * 10
    assert {r.code for r in replies if r.status == 409} == {"idempotency_key_reused"}
    assert len(await bank.truth("wires", account_id=sender.account_id)) == 1


async def test_a_forgotten_key_is_unknown_and_yet_no_wire_is_sent_twice(
    bank: Bank, books: asyncpg.Connection
) -> None:
    sender, key, refused = await open_sender(bank), new_id(), new_id()
    await sent(bank, sender, "40.00", key)
    await send(bank, sender, "100.00", refused)
    await books.execute(
        "UPDATE idempotency_record SET created_at = now() - interval '24 h' WHERE key = ANY($1)",
        [key, refused],
    )

    forgotten = await bank.wire_operation(key)
    again = await asyncio.gather(*(send(bank, sender, "40.00", key) for _ in range(3)))
    still_forgotten = await bank.wire_operation(key)
    funds_suffice = await send(bank, sender, "60.00", refused)

    assert (forgotten.status, forgotten.code) == (404, "unknown_key")
    assert {(r.status, r.code) for r in again} == {(409, "duplicate_transaction")}
    assert (still_forgotten.status, still_forgotten.code) == (404, "unknown_key")
    assert (funds_suffice.status, funds_suffice.replayed) == (200, False)
    assert len(await bank.truth("wires", account_id=sender.account_id)) == 2
    await assert_books_agree(bank, sender, "100.00")


async def test_the_id_of_another_transaction_is_no_wires_id(bank: Bank) -> None:
    sender: Sender = await open_sender(bank)
    [deposit] = await bank.truth("ledger", account_id=sender.account_id)

    reply = await send(bank, sender, "1.00", deposit["transaction_id"])

    assert re.fullmatch("[0-9a-f-]{36}", deposit["transaction_id"])
    assert (reply.status, reply.code) == (409, "duplicate_transaction")
