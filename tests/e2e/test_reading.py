"""What is read back: accounts, balances, linked external accounts, customers."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from tests.support.api import Api
from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import DENIED, PENDING_REVIEW, application
from tests.support.waiting import eventually


async def test_the_balance_is_the_sum_of_the_deposits_to_the_cent(live: Live) -> None:
    business = (await live.onboarded())["business"]
    chance = random.Random(20_260_101)
    deposits = [Decimal(chance.randrange(1, 10**9)).scaleb(-2) for _ in range(20)]
    deposits.append(Decimal("1234567890123.45"))

    for amount in deposits:
        await live.bank.deposit(business["account_id"], amount)
    answer = await live.partner.get(f"{ACCOUNTS}/balance/{business['account_id']}")

    total = sum(deposits)
    assert answer.data["available_balance"] == {"amount": total, "currency": "USD"}
    assert answer.data["held_balance"] == {"amount": 0, "currency": "USD"}
    assert answer.data["total_balance"] == {"amount": total, "currency": "USD"}
    assert answer.data["account_id"] == business["account_id"]
    assert answer.data["account_number"] == business["account_number"]
    assert f'"amount":{total}' in answer.raw.decode().replace(" ", "")
    assert answer.data["system_timestamp"][-8] == "."
    postings = await live.bank.ledger(business["account_id"])
    assert [Decimal(row["amount"]) for row in postings] == deposits


async def test_a_new_account_is_empty_and_open(live: Live) -> None:
    body = application()
    business = (await live.onboarded(body))["business"]

    account = (await live.partner.get(f"{ACCOUNTS}/{business['account_id']}")).data
    balance = (await live.partner.get(f"{ACCOUNTS}/balance/{business['account_id']}")).data

    assert account == {
        "id": business["account_id"],
        "account_number": business["account_number"],
        "account_group": "deposit",
        "account_title": account["account_title"],
        "name": body["business"]["business_name"],
        "dba_name": body["business"]["dba"],
        "status": "open",
        "interest_earned_year_to_date": 0,
        "annual_percentage_yield_earned": 0,
        "is_restricted": False,
        "close_date": None,
    }
    assert balance["total_balance"]["amount"] == 0


async def test_restriction_and_closing_show_and_are_told(live: Live) -> None:
    business = (await live.onboarded())["business"]
    account_id, customer_id = business["account_id"], business["customer_id"]

    async def account() -> Any:
        return (await live.partner.get(f"{ACCOUNTS}/{account_id}")).data

    await live.bank.change(account_id, "restrict")
    restricted = await account()
    await live.bank.change(account_id, "unrestrict")
    free = await account()
    await live.bank.change(account_id, "close")
    closed = await account()

    shown = live.bank.restricts_accounts
    assert (restricted["is_restricted"], restricted["status"]) == (shown, "open")
    assert (free["is_restricted"], free["status"]) == (False, "open")
    assert closed["status"] == "closed"
    assert closed["close_date"].endswith("Z")
    restrictions = ("restricted", "unrestricted") if live.bank.restricts_accounts else ()
    expected = [f"account.{what}" for what in ("opened", *restrictions, "closed")]

    async def told() -> bool:
        events = await live.events.of(customer_id)
        return [e["type"] for e in events if e["data"]["object"] == "account"] == expected

    await eventually("all events, in order", told)
    data = [e["data"] for e in await live.events.of(customer_id) if e["type"] == "account.opened"]
    assert data[0]["account_number"] == business["account_number"][-4:]

    async def is_closed() -> bool:
        (listed,) = (await live.customer(customer_id))["accounts"]
        return bool(listed["status"] == "closed")

    await eventually("the customer's account is closed", is_closed)


async def test_the_linked_external_account_has_its_full_number(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    sent = body["external_bank_account"]

    answer = await live.partner.get(f"{ACCOUNTS}/external/{data['business']['account_id']}")

    assert answer.data == {
        "external_account_id": data["external_bank_account"]["external_bank_account_id"],
        "external_account_number": sent["account_number"],
        "external_account_title": sent["name_on_account"],
        "external_institution_aba": sent["routing_number"],
        "external_institution_name": sent["bank_name"],
    }


async def test_a_customer_key_sees_its_own_customer_only(live: Live) -> None:
    body = application()
    mine, other = await live.onboarded(body), await live.onboarded()
    customer = await live.of_customer(mine["business"]["customer_id"])

    accounts = (await customer.get("/customer/accounts")).data
    linked = (await customer.get("/customer/external-accounts")).data

    assert accounts["name"] == body["business"]["business_name"]
    assert accounts["dba_name"] == body["business"]["dba"]
    assert [account["id"] for account in accounts["accounts"]] == [mine["business"]["account_id"]]
    assert set(accounts["accounts"][0]) == {
        *("id", "account_number", "account_group", "account_title")
    }
    assert linked == [
        {
            "external_account_id": mine["external_bank_account"]["external_bank_account_id"],
            "bank_name": body["external_bank_account"]["bank_name"],
            "name_on_account": body["external_bank_account"]["name_on_account"],
            "routing_number": body["external_bank_account"]["routing_number"],
            "account_number": body["external_bank_account"]["account_number"][-4:],
            "primary": True,
        }
    ]
    assert other["business"]["account_id"] not in str(accounts)


async def test_the_partners_list_has_every_account(live: Live) -> None:
    lister = await live.of_tenant("lister")
    empty = (await lister.get(ACCOUNTS)).data
    opened = [(await live.onboarded(api=lister))["business"] for _ in range(3)]
    await lister.post(CUSTOMERS, application(PENDING_REVIEW))

    data = (await lister.get(ACCOUNTS)).data

    assert empty == {"name": "lister", "dba_name": None, "accounts": []}
    assert (data["name"], data["dba_name"]) == ("lister", None)
    by_id = {account["id"]: account for account in data["accounts"]}
    assert by_id.keys() == {business["account_id"] for business in opened}
    assert len(data["accounts"]) == 3
    assert {account["status"] for account in data["accounts"]} == {"open"}


async def test_customers_are_listed_newest_first_by_page_and_status(live: Live) -> None:
    directory = await live.of_tenant("directory")
    endings = ["", DENIED, "", PENDING_REVIEW, ""]
    ids = []
    for ending in endings:
        data = (await directory.post(CUSTOMERS, application(ending))).data
        ids.append(data["business"]["customer_id"])
    newest_first = ids[::-1]

    everything = await directory.get(CUSTOMERS)
    second = await directory.get(f"{CUSTOMERS}?page=2&limit=2")
    beyond = await directory.get(f"{CUSTOMERS}?page=9&limit=2")
    approved = await directory.get(f"{CUSTOMERS}?status=approved")
    denied = await directory.get(f"{CUSTOMERS}?status=denied")

    assert listed(everything.data) == newest_first
    assert everything.body["pagination"] == {"limit": 50, "total": 5, "page": 1}
    assert listed(second.data) == newest_first[2:4]
    assert second.body["pagination"] == {"limit": 2, "total": 5, "page": 2}
    assert beyond.data == []
    assert listed(approved.data) == [newest_first[i] for i in (0, 2, 4)]
    assert approved.body["pagination"]["total"] == 3
    assert listed(denied.data) == [ids[1]]


def listed(customers: list[Any]) -> list[str]:
    return [customer["customer_id"] for customer in customers]


async def test_a_customer_is_shown_without_what_is_secret(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    sent, external = body["business"], body["external_bank_account"]

    answer = await live.partner.get(f"{CUSTOMERS}/{data['business']['customer_id']}")

    shown = answer.data
    assert (shown["status"], shown["issues"]) == ("approved", [])
    assert shown["business"]["ein"] == sent["ein"][-4:]
    assert shown["business"]["business_name"] == sent["business_name"]
    assert shown["business"]["affiliated_entities"] is None
    assert shown["business"]["mailing_address"] == shown["business"]["business_address"]
    assert shown["persons"] == [p | {"status": "approved"} for p in data["persons"]]
    assert shown["accounts"] == [
        {
            "id": data["business"]["account_id"],
            "account_number": data["business"]["account_number"],
            "status": "open",
        }
    ]
    assert shown["external_bank_accounts"] == [
        {
            **data["external_bank_account"],
            "bank_name": external["bank_name"],
            "account_number": external["account_number"][-4:],
            "primary": True,
        }
    ]
    secret = [sent["ein"], external["account_number"], "1980-12-10"]
    secret += [person["tin"] for person in body["persons"]]
    assert [value for value in secret if value in answer.raw.decode()] == []


async def test_nothing_is_cached_between_a_deposit_and_a_read(live: Live) -> None:
    account_id = (await live.onboarded())["business"]["account_id"]

    for dollars in range(1, 6):
        await live.bank.deposit(account_id, Decimal(1))
        assert await available(live.partner, account_id) == dollars


async def available(api: Api, account_id: str) -> Decimal:
    balance = (await api.get(f"{ACCOUNTS}/balance/{account_id}")).data
    return Decimal(balance["available_balance"]["amount"])
