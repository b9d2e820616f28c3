"""Another tenant's ids, and another customer's, are ids that do not exist."""

from __future__ import annotations

import uuid
from typing import Any

from tests.support.api import Answer, Api
from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import application, bank_account, new_key


async def everything_with_an_id(api: Api, data: Any) -> dict[str, Answer]:
    """Every endpoint that takes an id, called with those of this onboarding."""
    business, account_id = data["business"], data["business"]["account_id"]
    external = data["external_bank_account"]["external_bank_account_id"]
    person_id = data["persons"][0]["customer_id"]
    return {
        "account": await api.get(f"{ACCOUNTS}/{account_id}"),
        "balance": await api.get(f"{ACCOUNTS}/balance/{account_id}"),
        "external": await api.get(f"{ACCOUNTS}/external/{account_id}"),
        "customer": await api.get(f"{CUSTOMERS}/{business['customer_id']}"),
        "business": await api.patch(
            f"{CUSTOMERS}/business/{business['customer_id']}", {"business": {"dba": "Stolen"}}
        ),
        "empty business": await api.patch(
            f"{CUSTOMERS}/business/{business['customer_id']}", {"business": {}}
        ),
        "person": await api.patch(f"{CUSTOMERS}/person/{person_id}", {"last_name": "Stolen"}),
        "empty person": await api.patch(f"{CUSTOMERS}/person/{person_id}", {}),
        "add external": await api.post(
            f"{CUSTOMERS}/external_bank_account/{external}",
            {"external_bank_account": bank_account()},
        ),
    }


def made_up() -> Any:
    return {
        "business": {"customer_id": str(uuid.uuid4()), "account_id": "acc_nothing"},
        "external_bank_account": {"external_bank_account_id": "ext_nothing"},
        "persons": [{"customer_id": str(uuid.uuid4())}],
    }


def problem(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.body.items() if name != "request_id"}


async def test_another_partners_ids_are_not_found_on_every_endpoint(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    stranger = await live.of_tenant("brass")
    known = await everything_with_an_id(live.partner, data)
    before = await live.customer(data["business"]["customer_id"])

    theirs = await everything_with_an_id(stranger, data)
    nobodys = await everything_with_an_id(stranger, made_up())

    assert {name: answer.status for name, answer in known.items()} == dict.fromkeys(known, 200)
    assert {name: answer.code for name, answer in theirs.items()} == dict.fromkeys(
        theirs, "not_found"
    )
    assert {name: problem(answer) for name, answer in theirs.items()} == {
        name: problem(answer) for name, answer in nobodys.items()
    }, "what exists elsewhere cannot be told from what does not exist"
    assert await live.customer(data["business"]["customer_id"]) == before


async def test_lists_hold_nothing_of_another_partner(live: Live) -> None:
    data = await live.onboarded()
    stranger = await live.of_tenant("brass")

    accounts = await stranger.get(ACCOUNTS)
    customers = await stranger.get(f"{CUSTOMERS}?limit=100")

    assert accounts.status == customers.status == 200
    assert data["business"]["account_id"] not in accounts.raw.decode()
    assert data["business"]["customer_id"] not in customers.raw.decode()


async def test_a_body_of_another_partner_under_the_same_idempotency_key(live: Live) -> None:
    data = await live.onboarded()
    target = f"{CUSTOMERS}/business/{data['business']['customer_id']}"
    update, key = {"business": {"dba": "Mine"}}, new_key()
    assert (await live.partner.patch(target, update, key)).status == 200

    answer = await (await live.of_tenant("brass")).patch(target, update, key)

    assert (answer.status, answer.code) == (404, "not_found")


async def test_two_customers_of_one_partner_do_not_see_each_other(live: Live) -> None:
    first, second = await live.onboarded(), await live.onboarded()
    keys = [await live.of_customer(data["business"]["customer_id"]) for data in (first, second)]

    accounts = [(await key.get("/customer/accounts")).data["accounts"] for key in keys]
    linked = [(await key.get("/customer/external-accounts")).data for key in keys]

    assert [[a["id"] for a in listed] for listed in accounts] == [
        [data["business"]["account_id"]] for data in (first, second)
    ]
    assert [[a["external_account_id"] for a in listed] for listed in linked] == [
        [data["external_bank_account"]["external_bank_account_id"]] for data in (first, second)
    ]
