"""Accounts of businesses."""

from __future__ import annotations

from tests.integration.provider_sandbox.bank import Bank, external_account


async def test_only_open_businesses_get_accounts(bank: Bank) -> None:
    person = {"customer_id": "p", "kind": "person", "fields": {"tin": "123456789"}}
    person_id = (await bank.done("/core/customers", person))["core_id"]
    opened = await bank.open_account()
    closed = await bank.done(f"/core/customers/{opened.core_id}/close", {})
    account = {"account_group": "deposit", "account_title": "Main"}

    replies = {
        (core_id, path): await bank.write(path, body)
        for core_id in (person_id, opened.core_id, "cus_none")
        for path, body in (
            ("/core/accounts", account | {"core_id": core_id}),
            ("/core/external-accounts", external_account(core_id, "12345")),
        )
    }

    assert closed["status"] == "closed"
    assert (await bank.get(f"/core/customers/{opened.core_id}")).body == closed
    codes = {core_id: reply.code for (core_id, _), reply in replies.items()}
    assert codes == {
        person_id: "not_a_business",
        opened.core_id: "customer_closed",
        "cus_none": "not_found",
    }


async def test_an_account_lives_from_opened_to_closed(bank: Bank) -> None:
    opened = await bank.open_account("Acme Inc")
    account_id = opened.account_id

    restricted = await bank.simulate(f"accounts/{account_id}/restrict")
    await bank.simulate(f"accounts/{account_id}/restrict")
    unrestricted = await bank.simulate(f"accounts/{account_id}/unrestrict")
    closed = await bank.done(f"/core/accounts/{account_id}/close", {})
    closed_again = await bank.done(f"/core/accounts/{account_id}/close", {})
    too_late = await bank.simulate(f"accounts/{account_id}/restrict")

    assert (restricted.body["is_restricted"], unrestricted.body["is_restricted"]) == (True, False)
    assert closed == closed_again
    assert (closed["status"], closed["customer_id"]) == ("closed", opened.customer_id)
    assert (too_late.status, too_late.code) == (409, "account_closed")
    account = (await bank.get(f"/financial/accounts/{account_id}")).body
    assert account["closed_at"].endswith("Z")
    assert account | {"closed_at": None, "account_number": None} == {
        "account_id": account_id,
        "customer_id": opened.customer_id,
        "account_number": None,
        "account_group": "deposit",
        "account_title": "Main",
        "name": "Acme Inc",
        "dba_name": None,
        "status": "closed",
        "is_restricted": False,
        "interest_earned_year_to_date": "0.00",
        "annual_percentage_yield_earned": "0.00",
        "closed_at": None,
    }
    events = [e for e in await bank.events("financial") if e["account_id"] == account_id]
    assert [event["type"] for event in events] == [
        "account.opened",
        "account.restricted",
        "account.unrestricted",
        "account.closed",
    ]
    assert events[-1]["data"] == account
    assert events[-1]["customer_id"] == opened.customer_id


async def test_accounts_are_listed_as_they_were_asked_for(bank: Bank) -> None:
    first, second = await bank.open_account("One"), await bank.open_account("Two")
    asked = [second.account_id, "acc_none", first.account_id]

    listed = await bank.get("/financial/accounts", account_id=asked)
    too_many = await bank.get("/financial/accounts", account_id=[f"acc_{n}" for n in range(101)])

    assert [account["name"] for account in listed.body["accounts"]] == ["Two", "One"]
    assert (too_many.status, too_many.code) == (400, "invalid")
    rows = await bank.truth("accounts", customer_id=first.customer_id)
    assert rows == [
        {"account_id": first.account_id, "customer_id": first.customer_id, "status": "open"}
    ]


async def test_a_balance_takes_no_parameters(bank: Bank) -> None:
    opened = await bank.open_account()

    reply = await bank.get(f"/financial/accounts/{opened.account_id}/balance?since=2026-01-01")

    assert (reply.status, reply.code) == (400, "invalid")
