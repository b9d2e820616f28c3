from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.integration.provider_sandbox.bank import Bank, Reply, business, external_account
from tests.integration.provider_sandbox.books import balance, events_of
from tests.integration.provider_sandbox.lists import page
from tests.integration.provider_sandbox.wires import act, assert_books_agree, new_id, open_sender


async def patch(bank: Bank, path: str, fields: object) -> Reply:
    return await bank.call("PATCH", f"/simulate/{path}", headers={}, json={"fields": fields})


async def only(bank: Bank, path: str, **parameters: Any) -> dict[str, Any]:
    [row], _ = await page(bank, path, **parameters)
    return row


@pytest.mark.parametrize(("api", "id_name"), [("core", "core_id"), ("identity", "identity_id")])
async def test_fields_change_without_an_entry_in_the_feed_and_back_again(
    bank: Bank, api: str, id_name: str
) -> None:
    path = f"/{api}/customers"
    created = await bank.done(path, business(str(uuid.uuid4())))
    known = await only(bank, path, id=created[id_name])
    before = await bank.get(f"/{api}/events/newest")

    changed = await patch(bank, f"{api}/customers/{created[id_name]}", {"business_name": "Other"})
    different = await only(bank, path, id=created[id_name])
    mended = await patch(bank, f"{api}/customers/{created[id_name]}", {"business_name": "Acme"})

    assert (changed.status, mended.status) == (200, 200)
    assert different == {**known, "fields": {**known["fields"], "business_name": "Other"}}
    assert await only(bank, path, id=created[id_name]) == known
    assert (await bank.get(f"/{api}/events/newest")).body == before.body


async def test_a_change_of_fields_gives_no_new_verdict(bank: Bank) -> None:
    created = await bank.done("/identity/customers", business(str(uuid.uuid4())))
    identity = f"identity/customers/{created['identity_id']}"

    changed = await patch(bank, identity, {"ein": "12-3450001"})
    without = await patch(bank, identity, {"ein": None})

    assert changed.body["status"] == "approved"
    assert (without.status, without.code) == (422, "invalid")


@pytest.mark.parametrize(
    ("api", "id_name", "end", "code"),
    [
        ("core", "core_id", "close", "customer_closed"),
        ("identity", "identity_id", "cancel", "customer_canceled"),
    ],
)
async def test_a_customer_who_is_unknown_or_gone_is_not_changed(
    bank: Bank, api: str, id_name: str, end: str, code: str
) -> None:
    created = await bank.done(f"/{api}/customers", business(str(uuid.uuid4())))
    await bank.done(f"/{api}/customers/{created[id_name]}/{end}", {})

    gone = await patch(bank, f"{api}/customers/{created[id_name]}", {"dba": "x"})
    unknown = await patch(bank, f"{api}/customers/none", {"dba": "x"})
    malformed = await patch(bank, f"{api}/customers/{created[id_name]}", "x")

    assert (gone.status, gone.code) == (409, code)
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert (malformed.status, malformed.code) == (422, "invalid")


async def test_the_primary_moves_and_moves_back(bank: Bank) -> None:
    opened = await bank.open_account()
    first, second = [
        (await bank.done("/core/external-accounts", external_account(opened.core_id, number)))[
            "external_account_id"
        ]
        for number in ("111111", "222222")
    ]

    async def primaries() -> list[str]:
        rows, _ = await page(bank, "/core/external-accounts", customer_id=opened.customer_id)
        return [row["external_account_id"] for row in rows if row["primary"]]

    before = await primaries()
    moved = await bank.simulate(f"external-accounts/{first}/primary")
    after = await primaries()
    await bank.simulate(f"external-accounts/{second}/primary")
    await bank.simulate(f"external-accounts/{second}/primary")

    assert (before, after, await primaries()) == ([second], [first], [second])
    assert moved.body == {
        "external_account_id": first,
        "customer_id": opened.customer_id,
        "primary": True,
    }
    await bank.done(f"/core/external-accounts/{first}/close", {})
    closed = await bank.simulate(f"external-accounts/{first}/primary")
    unknown = await bank.simulate("external-accounts/ext_none/primary")
    assert (closed.status, closed.code) == (409, "external_account_closed")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert await primaries() == [second]


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"first_name": "Ada", "last_name": "Lane"}, "Ada Lane"), ({"tin": "123456789"}, "Unknown")],
)
async def test_an_account_is_opened_that_nobody_asked_for(
    bank: Bank, fields: object, name: str
) -> None:
    """The financial provider shows a name of it in any case: a feed's reader may rely on that."""
    customer_id = str(uuid.uuid4())
    person = {"customer_id": customer_id, "kind": "person", "fields": fields}
    core_id = (await bank.done("/core/customers", person))["core_id"]
    await bank.done(f"/core/customers/{core_id}/close", {})

    by_customer = await bank.simulate(
        "accounts", {"customer_id": customer_id, "account_title": "Unknown"}
    )
    by_record = await bank.simulate("accounts", {"core_id": core_id, "account_title": "Unknown"})
    closed = await bank.simulate(f"accounts/{by_record.body['account_id']}/close")

    rows, _ = await page(bank, "/core/accounts", customer_id=customer_id)
    assert [(row["account_id"], row["core_id"], row["status"]) for row in rows] == [
        (by_customer.body["account_id"], core_id, "open"),
        (closed.body["account_id"], core_id, "closed"),
    ]
    [(kind, account)] = await events_of(bank, by_customer.body["account_id"])
    assert (kind, account["name"]) == ("account.opened", name)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"customer_id": "none"}, 404, "not_found"),
        ({"core_id": "none"}, 404, "not_found"),
        ({"core_id": "none", "customer_id": "none"}, 422, "invalid"),
        ({}, 422, "invalid"),
    ],
    ids=str,
)
async def test_an_account_of_no_customer_is_not_opened(
    bank: Bank, body: dict[str, str], status: int, code: str
) -> None:
    reply = await bank.simulate("accounts", {**body, "account_title": "x"})

    assert (reply.status, reply.code) == (status, code)


async def test_a_wire_that_nobody_sent_is_a_wire_like_any_other(bank: Bank) -> None:
    sender, key = await open_sender(bank), new_id()
    order = sender.order("40.00", transaction_id=key)

    accepted = await bank.simulate("wires", order)
    holding = await balance(bank, sender.account_id)
    again = await bank.simulate("wires", order)
    asked = await bank.get(f"/core/operations/{key}")
    await act(bank, key, "complete")

    assert (accepted.status, accepted.body["state"]) == (200, "submitted")
    assert holding == {"available": "60.00", "held": "40.00", "total": "100.00"}
    assert (again.status, again.code) == (409, "duplicate_transaction")
    assert (asked.status, asked.code) == (404, "unknown_key")
    assert (await only(bank, "/core/wires", id=key))["state"] == "completed"
    await assert_books_agree(bank, sender, "100.00")


async def test_a_wire_that_the_bank_would_refuse_is_refused_here_too(bank: Bank) -> None:
    sender = await open_sender(bank)

    async def refusal(**more: object) -> tuple[int, str]:
        body = {**sender.order("100.01"), "transaction_id": new_id(), **more}
        reply = await bank.simulate("wires", body)
        return reply.status, reply.code

    assert await refusal() == (409, "insufficient_funds")
    assert await refusal(account_id="acc_none") == (404, "not_found")
    assert await refusal(external_account_id="x") == (409, "external_account_not_linked")
    assert await refusal(transaction_id="x") == (422, "invalid")
    assert await refusal(amount=-1) == (422, "invalid")
