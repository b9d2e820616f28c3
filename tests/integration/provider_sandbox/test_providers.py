from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from tests.integration.provider_sandbox.bank import ADDRESS, Bank, business, external_account


async def identity_events(bank: Bank, customer_id: str) -> list[dict[str, Any]]:
    """What the feed tells of one customer."""
    return [e for e in await all_events(bank, "identity") if e["customer_id"] == customer_id]


async def all_events(bank: Bank, api: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while True:
        after = events[-1]["position"] if events else 0
        page = (await bank.get(f"/{api}/events", after=after, limit=500)).body["events"]
        if not page:
            return events
        events += page


@pytest.mark.parametrize("path", ["/identity/events", "/core/customers/x", "/financial/accounts/x"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}], ids=["none", "wrong"])
async def test_without_the_token_nothing_is_told(
    bank: Bank, path: str, headers: dict[str, str]
) -> None:
    reply = await bank.call("GET", path, headers=headers)

    assert (reply.status, reply.code) == (401, "unauthorized")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"customer_id":"c"}',
        b'{"customer_id":1,"kind":"business","fields":{"ein":"123456789"}}',
        b'{"customer_id":"c","kind":"firm","fields":{"ein":"123456789"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"12345"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"123456789","a":"\\u0000"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"123456789"},"more":1}',
    ],
    ids=str,
)
async def test_what_the_bank_cannot_read_is_malformed(bank: Bank, body: bytes) -> None:
    headers = bank.authorization | {"Idempotency-Key": str(uuid.uuid4())}

    reply = await bank.call("POST", "/identity/customers", headers=headers, data=body)

    assert (reply.status, reply.code) == (400, "malformed")
    assert "123456789" not in reply.body["error"]["message"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/identity/customers/idn_none", 404, "not_found"),
        ("/core/customers/a%00b", 400, "invalid"),
        ("/financial/accounts/%FF", 404, "not_found"),
        ("/financial/accounts", 400, "invalid"),
        ("/financial/events?limit=501", 400, "invalid"),
        ("/financial/events?after=-1", 400, "invalid"),
        ("/financial/events?page=1", 400, "invalid"),
        ("/financial/external-accounts?customer_id=c&cursor=xyz", 400, "invalid"),
        ("/core/events/1", 404, "not_found"),
    ],
)
async def test_what_is_not_there_or_makes_no_sense_is_said(
    bank: Bank, path: str, status: int, code: str
) -> None:
    reply = await bank.get(path)

    assert (reply.status, reply.code) == (status, code)


@pytest.mark.parametrize(
    ("ending", "status", "issues"),
    [
        ("0001", "denied", ["identity_denied"]),
        ("0002", "pending_review", ["manual_review"]),
        ("0003", "awaiting_documents", ["documents_required"]),
        ("6789", "approved", []),
    ],
)
@pytest.mark.parametrize("kind", ["business", "person"])
async def test_the_number_decides_about_a_customer(
    bank: Bank, kind: str, ending: str, status: str, issues: list[str]
) -> None:
    customer_id, number = str(uuid.uuid4()), f"12345{ending}"
    fields = {"ein": number} if kind == "business" else {"tin": number}

    created = await bank.done(
        "/identity/customers", {"customer_id": customer_id, "kind": kind, "fields": fields}
    )

    assert {k: created[k] for k in ("customer_id", "kind", "status", "version")} == {
        "customer_id": customer_id,
        "kind": kind,
        "status": status,
        "version": 1,
    }
    assert [issue["code"] for issue in created["issues"]] == issues
    assert (await bank.get(f"/identity/customers/{created['identity_id']}")).body == created
    [event] = await identity_events(bank, customer_id)
    assert event["type"] == "customer.status_changed"
    assert {k: event[k] for k in created} == created
    assert await bank.truth("customers", customer_id=customer_id) == [
        {
            "api": "identity",
            "customer_id": customer_id,
            "kind": kind,
            "status": status,
            "fields": fields,
        }
    ]


async def test_a_decision_settles_what_is_undecided_of_the_customer_and_no_more(bank: Bank) -> None:
    customer_id, person_id = str(uuid.uuid4()), str(uuid.uuid4())
    await bank.done("/identity/customers", business(customer_id, ein="123450002"))
    await bank.done("/identity/customers", business(customer_id, ein="123450003"))
    await bank.done("/identity/customers", business(customer_id, ein="123450001"))
    person = {
        "customer_id": person_id,
        "kind": "person",
        "business_customer_id": customer_id,
        "fields": {"tin": "123450002"},
    }
    await bank.done("/identity/customers", person)

    decision = {"customer_id": customer_id, "decision": "approved"}
    decided = await bank.simulate("identity/decisions", decision)
    again = await bank.simulate("identity/decisions", decision)

    assert (decided.status, decided.body) == (200, {"decided": 2})
    assert (again.status, again.code) == (409, "already_decided")
    rows = await bank.truth("customers", customer_id=customer_id)
    assert [row["status"] for row in rows] == ["approved", "approved", "denied"]
    [row] = await bank.truth("customers", customer_id=person_id)
    assert row["status"] == "pending_review"
    events = await identity_events(bank, customer_id)
    assert [(e["status"], e["version"]) for e in events[3:]] == [("approved", 2)] * 2
    [event] = await identity_events(bank, person_id)
    assert event["business_customer_id"] == customer_id


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"customer_id": "nobody", "decision": "approved"}, 404, "not_found"),
        ({"customer_id": "nobody", "decision": "maybe"}, 422, "invalid"),
        ({"decision": "approved"}, 422, "invalid"),
    ],
)
async def test_a_decision_about_nobody_or_nothing_is_refused(
    bank: Bank, body: dict[str, str], status: int, code: str
) -> None:
    reply = await bank.simulate("identity/decisions", body)

    assert (reply.status, reply.code) == (status, code)


async def test_an_update_is_sparse_at_every_level_and_null_clears(bank: Bank) -> None:
    customer_id = str(uuid.uuid4())
    identity = await bank.done("/identity/customers", business(customer_id, dba="Ac"))
    core = await bank.done("/core/customers", business(customer_id, dba="Ac"))
    patch = {"fields": {"dba": None, "phone": "+1", "business_address": {"city": "Elko"}}}

    for path in (
        f"identity/customers/{identity['identity_id']}",
        f"core/customers/{core['core_id']}",
    ):
        await bank.done(f"/{path}", patch, method="PATCH")

    for row in await bank.truth("customers", customer_id=customer_id):
        assert row["fields"] == {
            "business_name": "Acme",
            "ein": "12-3456789",
            "phone": "+1",
            "business_address": ADDRESS | {"city": "Elko"},
        }
    assert len(await identity_events(bank, customer_id)) == 1, "the status never changed"


async def test_another_number_is_looked_at_or_refused(bank: Bank) -> None:
    customer_id = str(uuid.uuid4())
    created = await bank.done("/identity/customers", business(customer_id))
    path = f"/identity/customers/{created['identity_id']}"

    refused = await bank.write(path, {"fields": {"ein": "123450001", "dba": "B"}}, method="PATCH")
    cleared = await bank.write(path, {"fields": {"ein": None}}, method="PATCH")
    same = await bank.write(path, {"fields": {"ein": "123456789"}}, method="PATCH")
    looked_at = await bank.write(path, {"fields": {"ein": "123450003"}}, method="PATCH")
    once_more = await bank.write(path, {"fields": {"ein": "123450002"}}, method="PATCH")

    assert (refused.status, refused.code) == (422, "identity_refused")
    assert (cleared.status, cleared.code) == (400, "invalid")
    assert (same.body["status"], same.body["version"]) == ("approved", 1)
    assert (looked_at.body["status"], looked_at.body["version"]) == ("pending_review", 2)
    assert (once_more.body["status"], once_more.body["version"]) == ("pending_review", 2)
    [row] = await bank.truth("customers", customer_id=customer_id)
    assert "dba" not in row["fields"]
    assert row["fields"]["ein"] == "123450002"


async def test_a_canceled_customer_stays_so(bank: Bank) -> None:
    created = await bank.done("/identity/customers", business(str(uuid.uuid4()), ein="123450002"))
    path = f"/identity/customers/{created['identity_id']}"

    canceled = await bank.done(f"{path}/cancel", {})
    again = await bank.done(f"{path}/cancel", {})
    updated = await bank.write(path, {"fields": {"dba": "B"}}, method="PATCH")

    assert (canceled["status"], canceled["version"]) == ("canceled", 2)
    assert again == canceled
    assert (updated.status, updated.code) == (409, "customer_canceled")


async def test_a_new_primary_external_account_takes_the_place_of_the_old(bank: Bank) -> None:
    opened = await bank.open_account()
    path = f"/financial/accounts/{opened.account_id}/external-account"
    none_yet = await bank.get(path)

    first = await bank.done("/core/external-accounts", external_account(opened.core_id, "11111"))
    second = await bank.done("/core/external-accounts", external_account(opened.core_id, "22222"))
    linked = await bank.write("/core/external-accounts", external_account(opened.core_id, "11111"))

    assert none_yet.status == 404
    assert (linked.status, linked.code) == (409, "already_linked")
    assert (await bank.get(path)).body == {
        "external_account_id": second["external_account_id"],
        "account_number": "22222",
        "title": "Acme",
        "routing_number": "021000021",
        "institution_name": "First Bank",
    }
    assert await bank.truth("external-accounts", customer_id=opened.customer_id) == [
        first | {"primary": False},
        second,
    ]


async def test_closing_the_primary_one_makes_the_newest_other_primary(bank: Bank) -> None:
    opened = await bank.open_account()
    numbers = ("11111", "22222", "33333")
    ids = [
        (await bank.done("/core/external-accounts", external_account(opened.core_id, number)))[
            "external_account_id"
        ]
        for number in numbers
    ]

    closed = await bank.done(f"/core/external-accounts/{ids[2]}/close", {})
    linked_anew = await bank.write(
        "/core/external-accounts", external_account(opened.core_id, "33333", primary=False)
    )

    assert closed == {
        "external_account_id": ids[2],
        "customer_id": opened.customer_id,
        "primary": False,
        "status": "closed",
    }
    assert linked_anew.status == 200
    rows = await bank.truth("external-accounts", customer_id=opened.customer_id)
    assert [(row["external_account_id"], row["primary"]) for row in rows[:2]] == [
        (ids[0], False),
        (ids[1], True),
    ]


async def test_of_many_links_at_once_one_is_primary_and_none_is_double(bank: Bank) -> None:
    opened = await bank.open_account()
    numbers = [f"1000{n % 5}" for n in range(20)]

    replies = await asyncio.gather(
        *(
            bank.write("/core/external-accounts", external_account(opened.core_id, number))
            for number in numbers
        )
    )

    assert sorted(reply.status for reply in replies) == [200] * 5 + [409] * 15
    rows = await bank.truth("external-accounts", customer_id=opened.customer_id)
    assert len(rows) == 5
    assert sum(row["primary"] for row in rows) == 1


async def test_external_accounts_are_listed_in_pages_the_primary_first(bank: Bank) -> None:
    opened = await bank.open_account()
    for number, primary in (("11111", False), ("22222", True), ("33333", False), ("44444", False)):
        body = external_account(opened.core_id, number, primary=primary)
        await bank.done("/core/external-accounts", body)

    numbers, cursor = [], None
    while True:
        parameters = {"customer_id": opened.customer_id, "limit": 3}
        page = await bank.get(
            "/financial/external-accounts", **parameters, **({"cursor": cursor} if cursor else {})
        )
        numbers.append([row["account_number"] for row in page.body["external_accounts"]])
        cursor = page.body["next_cursor"]
        if cursor is None:
            break

    assert numbers == [["22222", "44444", "33333"], ["11111"]]


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
    events = [e for e in await all_events(bank, "financial") if e["account_id"] == account_id]
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
