"""Onboarding as a caller sees it: decided at once, or later by the identity provider's word alone."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import (
    APPROVED,
    AWAITING_DOCUMENTS,
    DENIED,
    PENDING_REVIEW,
    application,
    person,
)
from tests.support.waiting import eventually

ENDINGS = {
    "denied": DENIED,
    "pending_review": PENDING_REVIEW,
    "awaiting_documents": AWAITING_DOCUMENTS,
}
TOLD = {
    "denied": "customer.denied",
    "pending_review": "customer.pending_review",
    "awaiting_documents": "customer.documents_required",
}
BORN = Counter({"customer.created": 1, "person.created": 2, "person.updated": 2})


async def test_an_approved_business_has_its_account_at_once(live: Live) -> None:
    body = application()

    data = (await live.partner.post(CUSTOMERS, body)).data

    assert data["status"] == "approved"
    assert len(data["business"]["account_number"]) == 12
    assert [(p["first_name"], p["last_name"]) for p in data["persons"]] == [
        (p["first_name"], p["last_name"]) for p in body["persons"]
    ]
    account = (await live.partner.get(f"{ACCOUNTS}/{data['business']['account_id']}")).data
    assert account["account_number"] == data["business"]["account_number"]
    await live.exists_once(data)


async def test_a_supplied_person_id_becomes_the_persons_id_once_per_partner(live: Live) -> None:
    supplied = "0198c0de-0000-7000-8000-00000000f00d"
    body = application(persons=[person(id=supplied)])

    data = await live.onboarded(body)
    again = await live.partner.post(CUSTOMERS, application(persons=[person(id=supplied)]))
    elsewhere = await live.onboarded(
        application(persons=[person(id=supplied)]), await live.of_tenant("brass")
    )

    assert [p["customer_id"] for p in data["persons"]] == [supplied]
    assert (again.status, again.code) == (409, "already_exists")
    assert again.body["customer_id"] == data["business"]["customer_id"]
    assert [p["customer_id"] for p in elsewhere["persons"]] == [supplied]


@pytest.mark.parametrize("whose", ["business", "person"])
@pytest.mark.parametrize("status", list(ENDINGS))
async def test_what_verification_says_is_what_the_caller_reads(
    live: Live, status: str, whose: str
) -> None:
    ending = ENDINGS[status]
    body = application(ending, APPROVED) if whose == "business" else application(APPROVED, ending)

    data = (await live.partner.post(CUSTOMERS, body)).data

    customer_id = data["business"]["customer_id"]
    assert data["status"] == status
    assert data["business"]["account_id"] is data["business"]["account_number"] is None
    found = await live.customer(customer_id)
    assert found["status"] == status
    assert found["accounts"] == []
    is_persons = whose == "person" and (live.bank.judges_each or status != "pending_review")
    person_id = data["persons"][0]["customer_id"] if is_persons else None
    has_issues = status != "denied" or live.bank.explains_denials
    assert {issue["person_id"] for issue in found["issues"]} == (
        {person_id} if has_issues else set()
    )
    assert await live.bank.accounts(customer_id) == []
    await live.has_events(customer_id, BORN + Counter({TOLD[status]: 1}))


@pytest.mark.parametrize("status", ["pending_review", "awaiting_documents"])
async def test_a_decision_opens_the_account_without_another_request(
    live: Live, status: str, idempotency_key: str
) -> None:
    body = application(ENDINGS[status])
    first = await live.partner.post(CUSTOMERS, body, idempotency_key)
    customer_id = first.data["business"]["customer_id"]

    await live.bank.decide(customer_id, "approved")
    customer = await live.has_account(customer_id)

    account_id = customer["accounts"][0]["id"]
    assert customer["status"] == "approved"
    assert customer["issues"] == []
    as_customer = await live.of_customer(customer_id)
    listed = (await as_customer.get("/customer/accounts")).data
    assert [account["id"] for account in listed["accounts"]] == [account_id]
    assert (await live.partner.get(f"{ACCOUNTS}/{account_id}")).data["status"] == "open"
    assert (await live.partner.get(f"{ACCOUNTS}/balance/{account_id}")).status == 200
    replay = await live.partner.post(CUSTOMERS, body, idempotency_key)
    assert (replay.is_replayed, replay.raw) == (True, first.raw)
    told = Counter({TOLD[status]: 1, "customer.approved": 1})
    opened = Counter({"external_account.created": 1, "account.opened": 1})
    decided = persons_told(live) if status == "pending_review" else Counter()
    await live.has_events(customer_id, BORN + told + decided + opened)


def persons_told(live: Live) -> Counter[str]:
    """The events of both persons, where a decision about the business is one about them."""
    return Counter() if live.bank.judges_each else Counter({"person.updated": 2})


async def test_a_denial_by_decision_ends_it(live: Live) -> None:
    body = application(PENDING_REVIEW)
    customer_id = (await live.partner.post(CUSTOMERS, body)).data["business"]["customer_id"]

    await live.bank.decide(customer_id, "denied")
    await live.has_status(customer_id, "denied")

    assert await live.bank.accounts(customer_id) == []
    told = Counter({"customer.pending_review": 1, "customer.denied": 1})
    await live.has_events(customer_id, BORN + told + persons_told(live))
    again = await live.partner.post(CUSTOMERS, application() | {"business": body["business"]})
    assert again.data["status"] == "pending_review", "a denied business may apply again"


async def test_all_of_business_and_persons_have_to_be_decided(live: Live) -> None:
    if not live.bank.judges_each:
        pytest.skip("the bank judges a business with its persons")
    body = application(PENDING_REVIEW, AWAITING_DOCUMENTS)
    data = (await live.partner.post(CUSTOMERS, body)).data
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]

    async def undecided(whose: list[str | None]) -> Any:
        found = await live.customer(customer_id)
        return found if [issue["person_id"] for issue in found["issues"]] == whose else None

    await live.bank.decide(customer_id, "approved")
    halfway = await eventually("the business alone is decided", partial(undecided, [person_id]))
    await live.bank.decide(person_id, "approved")
    customer = await live.has_account(customer_id)

    assert (halfway["status"], halfway["accounts"]) == ("awaiting_documents", [])
    assert (customer["status"], customer["issues"]) == ("approved", [])


async def test_one_person_denied_by_decision_denies_the_customer(live: Live) -> None:
    if not live.bank.judges_each:
        pytest.skip("the bank judges a business with its persons")
    data = (await live.partner.post(CUSTOMERS, application(APPROVED, PENDING_REVIEW))).data

    await live.bank.decide(data["persons"][0]["customer_id"], "denied")

    customer = await live.has_status(data["business"]["customer_id"], "denied")
    assert customer["accounts"] == []


async def test_the_same_ein_is_taken_while_the_first_is_not_denied(live: Live) -> None:
    body = application()
    first = await live.onboarded(body)

    again = await live.partner.post(CUSTOMERS, application() | {"business": body["business"]})
    elsewhere = await live.onboarded(body, await live.of_tenant("brass"))

    assert (again.status, again.code) == (409, "already_exists")
    assert again.body["customer_id"] == first["business"]["customer_id"]
    assert elsewhere["status"] == "approved"


async def test_an_idempotency_key_gives_the_first_answer_again(
    live: Live, idempotency_key: str
) -> None:
    body = application()

    first = await live.partner.post(CUSTOMERS, body, idempotency_key)
    second = await live.partner.post(CUSTOMERS, body, idempotency_key)
    other = await live.partner.post(CUSTOMERS, application(), idempotency_key)
    stranger = await (await live.of_tenant("brass")).post(CUSTOMERS, body, idempotency_key)

    assert (first.status, first.is_replayed) == (200, False)
    assert (second.raw, second.is_replayed) == (first.raw, True)
    assert (other.status, other.code) == (409, "idempotency_key_reused")
    assert stranger.data["business"]["customer_id"] != first.data["business"]["customer_id"]
    await live.exists_once(first.data)


async def test_a_refusal_is_an_answer_that_is_kept(live: Live, idempotency_key: str) -> None:
    taken = application()
    await live.onboarded(taken)
    body = application() | {"business": taken["business"]}

    first = await live.partner.post(CUSTOMERS, body, idempotency_key)
    second = await live.partner.post(CUSTOMERS, body, idempotency_key)

    assert (first.status, first.code) == (409, "already_exists")
    assert (second.status, second.code, second.is_replayed) == (409, "already_exists", True)


async def test_a_wrong_body_burns_no_idempotency_key(live: Live, idempotency_key: str) -> None:
    wrong = await live.partner.post(CUSTOMERS, {"business": {}}, idempotency_key)
    right = await live.partner.post(CUSTOMERS, application(), idempotency_key)

    assert wrong.status == 422
    assert (right.status, right.is_replayed) == (200, False)
