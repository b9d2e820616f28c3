"""Customers and what is decided about them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.integration.provider_sandbox.bank import ADDRESS, Bank, business


async def identity_events(bank: Bank, customer_id: str) -> list[dict[str, Any]]:
    """What the feed tells of one customer."""
    return [e for e in await bank.events("identity") if e["customer_id"] == customer_id]


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
    assert person_id in again.body["error"]["message"]
    rows = await bank.truth("customers", customer_id=customer_id)
    assert [row["status"] for row in rows] == ["approved", "approved", "denied"]
    [row] = await bank.truth("customers", customer_id=person_id)
    assert row["status"] == "pending_review"
    events = await identity_events(bank, customer_id)
    assert [(e["status"], e["version"]) for e in events[3:]] == [("approved", 2)] * 2
    [event] = await identity_events(bank, person_id)
    assert event["business_customer_id"] == customer_id


async def test_a_decision_with_persons_settles_those_of_the_business(bank: Bank) -> None:
    customer_id, person_id = str(uuid.uuid4()), str(uuid.uuid4())
    await bank.done("/identity/customers", business(customer_id))
    person = {
        "customer_id": person_id,
        "kind": "person",
        "business_customer_id": customer_id,
        "fields": {"tin": "123450003"},
    }
    await bank.done("/identity/customers", person)
    decision = {"customer_id": customer_id, "decision": "approved", "with_persons": True}

    decided = await bank.simulate("identity/decisions", decision)
    again = await bank.simulate("identity/decisions", decision)

    assert (decided.status, decided.body) == (200, {"decided": 1})
    [row] = await bank.truth("customers", customer_id=person_id)
    assert row["status"] == "approved"
    assert again.code == "already_decided"
    assert person_id not in again.body["error"]["message"]


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
