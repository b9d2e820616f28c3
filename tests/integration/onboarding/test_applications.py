"""Onboarding as callers and the bank see it."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import GetCustomer, ListCustomers
from libs.contracts.errors import AlreadyExists, NotFound, ProviderRefused
from libs.contracts.operating.saga_steps import (
    LIST_STEPS,
    SETTLE_STEP,
    ListSagaSteps,
    SettleStep,
    StepKind,
)
from libs.contracts.ownership import FindAccountOwner, FindCustomer, ListOwnedAccounts
from libs.contracts.principal import Family, Principal
from tests.integration.onboarding.desk import (
    DENIED,
    DOCUMENTS,
    GOOD,
    REVIEW,
    Desk,
    application,
    business,
    eventually,
    partner,
    person,
    tax_number,
)
from tests.support.answered_operators import OPERATOR

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_good_application_is_approved_with_an_account_at_once(desk: Desk) -> None:
    first, second = person(), person(first_name="Bo", controller=False, ownership_percentage=40)

    result = await desk.onboard(application(persons=[first, second]))

    customer_id = result["business"]["customer_id"]
    assert result["status"] == "approved"
    (account,) = await desk.truth("accounts", customer_id)
    assert account["account_id"] == result["business"]["account_id"]
    (external,) = await desk.truth("external-accounts", customer_id)
    linked = result["external_bank_account"]["external_bank_account_id"]
    assert external == {
        "external_account_id": linked,
        "customer_id": customer_id,
        "primary": True,
    }
    seen = await desk.customer(customer_id)
    assert [p["customer_id"] for p in seen["persons"]] == [
        p["customer_id"] for p in result["persons"]
    ]
    assert {p["status"] for p in seen["persons"]} == {"approved"}
    assert seen["external_bank_accounts"][0]["external_bank_account_id"] == linked
    await desk.until_quiet()
    assert desk.types_of(customer_id) == [
        "customer.approved",
        "customer.created",
        "external_account.created",
        "person.created",
        "person.created",
        "person.updated",
        "person.updated",
    ]


async def test_events_of_a_resource_are_numbered_without_gaps(desk: Desk) -> None:
    result = await desk.onboard(application())

    customer_id = result["business"]["customer_id"]
    await desk.until_quiet()
    numbered = [
        (event["type"], event["sequence"])
        for event in desk.events
        if event["resource_id"] == customer_id
    ]
    assert numbered == [("customer.created", 1), ("customer.approved", 2)]


@pytest.mark.parametrize(
    ("ending", "status", "event"),
    [
        (DENIED, "denied", "customer.denied"),
        (REVIEW, "pending_review", "customer.pending_review"),
        (DOCUMENTS, "awaiting_documents", "customer.documents_required"),
    ],
)
@pytest.mark.parametrize("whose", ["business", "person"])
async def test_an_application_that_is_not_approved_says_so_and_opens_nothing(
    desk: Desk, ending: str, status: str, event: str, whose: str
) -> None:
    command = (
        application(business=business(ein=tax_number(ending)))
        if whose == "business"
        else application(persons=[person(tin=tax_number(ending))])
    )

    result = await desk.onboard(command)

    customer_id = result["business"]["customer_id"]
    assert result["status"] == status
    assert result["business"]["account_id"] is None
    assert result["external_bank_account"]["external_bank_account_id"] is None
    assert await desk.truth("accounts", customer_id) == []
    found = await desk.ask(table.FIND_CUSTOMER, FindCustomer(customer_id=customer_id), partner())
    assert found["data"]["is_final"] is (status == "denied")
    seen = await desk.customer(customer_id)
    (issue,) = seen["issues"]
    person_id = result["persons"][0]["customer_id"]
    assert issue["person_id"] == (person_id if whose == "person" else None)
    await desk.until_quiet()
    assert desk.types_of(customer_id) == sorted(
        ["customer.created", "person.created", "person.updated", event]
    )


@pytest.mark.parametrize("ending", [GOOD, DENIED, REVIEW, DOCUMENTS])
async def test_the_newest_event_of_each_person_has_its_verdict(desk: Desk, ending: str) -> None:
    persons = [person(tin=tax_number(ending)), person(controller=False, ownership_percentage=10)]

    result = await desk.onboard(application(persons=persons))

    seen = await desk.customer(result["business"]["customer_id"])
    await desk.until_quiet()
    ids = {one["customer_id"] for one in result["persons"]}
    told = sorted(
        (event for event in desk.events if event["resource_id"] in ids),
        key=lambda event: event["sequence"],
    )
    assert [event["sequence"] for event in told] == [1, 1, 2, 2]
    assert {event["type"] for event in told[:2]} == {"person.created"}
    assert {event["type"] for event in told[2:]} == {"person.updated"}
    newest = {event["resource_id"]: event["data"]["status"] for event in told}
    assert newest == {one["customer_id"]: one["status"] for one in seen["persons"]}
    assert "pending" not in newest.values()


@pytest.mark.parametrize("ending", [REVIEW, DOCUMENTS])
async def test_a_decision_opens_the_account_without_another_request(
    desk: Desk, ending: str
) -> None:
    result = await desk.onboard(application(business=business(ein=tax_number(ending))))
    customer_id = result["business"]["customer_id"]

    await desk.bank(
        "POST", "/simulate/identity/decisions", customer_id=customer_id, decision="approved"
    )

    async def approved() -> bool:
        return bool((await desk.customer(customer_id))["status"] == "approved")

    await eventually(approved)
    seen = await desk.customer(customer_id)
    (account,) = await desk.truth("accounts", customer_id)
    assert [a["id"] for a in seen["accounts"]] == [account["account_id"]]
    assert seen["issues"] == []
    owner = await desk.ask(
        table.FIND_ACCOUNT_OWNER, FindAccountOwner(account_id=account["account_id"])
    )
    assert owner["data"]["customer_id"] == customer_id
    await desk.until_quiet()
    assert desk.types_of(customer_id).count("customer.approved") == 1
    assert desk.types_of(customer_id).count("external_account.created") == 1


async def test_all_undecided_have_to_be_decided_before_the_account_opens(desk: Desk) -> None:
    persons = [person(tin=tax_number(REVIEW)), person(tin=tax_number(DOCUMENTS), controller=False)]
    for one in persons:
        one["ownership_percentage"] = 10
    result = await desk.onboard(application(persons=persons))
    customer_id = result["business"]["customer_id"]
    first, second = (p["customer_id"] for p in result["persons"])
    assert result["status"] == "awaiting_documents"

    async def status_is(status: str) -> bool:
        return bool((await desk.customer(customer_id))["status"] == status)

    await desk.bank("POST", "/simulate/identity/decisions", customer_id=second, decision="approved")
    await eventually(lambda: status_is("pending_review"))
    assert await desk.truth("accounts", customer_id) == []
    await desk.bank("POST", "/simulate/identity/decisions", customer_id=first, decision="approved")
    await eventually(lambda: status_is("approved"))

    assert len(await desk.truth("accounts", customer_id)) == 1


async def test_a_decision_can_deny(desk: Desk) -> None:
    ein = tax_number(REVIEW)
    result = await desk.onboard(application(business=business(ein=ein)))
    customer_id = result["business"]["customer_id"]

    await desk.bank(
        "POST", "/simulate/identity/decisions", customer_id=customer_id, decision="denied"
    )

    async def denied() -> bool:
        return bool((await desk.customer(customer_id))["status"] == "denied")

    await eventually(denied)
    again = await desk.onboard(application(business=business(ein=ein)))
    assert again["status"] == "pending_review", "the EIN of a denied customer is free"


async def test_the_ein_of_a_customer_cannot_be_onboarded_again_but_by_another_partner(
    desk: Desk,
) -> None:
    ein = tax_number()
    await desk.onboard(application(business=business(ein=ein)))

    with pytest.raises(AlreadyExists):
        await desk.onboard(application(business=business(ein=f"{ein[:2]}-{ein[2:]}")))

    other = await desk.onboard(
        application(business=business(ein=ein)), principal=partner("another")
    )
    assert other["status"] == "approved"


async def test_of_ten_applications_with_one_ein_at_once_exactly_one_passes(desk: Desk) -> None:
    ein = tax_number()

    results = await asyncio.gather(
        *(desk.onboard(application(business=business(ein=ein))) for _ in range(10)),
        return_exceptions=True,
    )

    refused = [result for result in results if isinstance(result, AlreadyExists)]
    assert len(refused) == 9
    rows = await desk.bank("GET", "/truth/customers")
    assert sum(row["fields"].get("ein") == ein for row in rows) == 2  # identity and core


async def test_a_supplied_person_id_is_kept_and_taken_once_per_partner(desk: Desk) -> None:
    person_id = str(uuid4())

    result = await desk.onboard(application(persons=[person(id=person_id)]))

    assert result["persons"][0]["customer_id"] == person_id
    with pytest.raises(AlreadyExists):
        await desk.onboard(application(persons=[person(id=person_id)]))
    other = await desk.onboard(
        application(persons=[person(id=person_id)]), principal=partner("another")
    )
    assert other["persons"][0]["customer_id"] == person_id


async def test_the_id_of_a_business_is_no_id_of_a_person_of_the_same_partner(desk: Desk) -> None:
    business_id = (await desk.onboard(application()))["business"]["customer_id"]
    theirs = application(persons=[person(id=business_id)])

    with pytest.raises(AlreadyExists) as refused:
        await desk.onboard(theirs)
    other = await desk.onboard(theirs, principal=partner("another"))

    assert refused.value.extra["customer_id"] == business_id
    assert other["persons"][0]["customer_id"] == business_id


async def test_a_refused_account_takes_everything_back_and_denies(desk: Desk) -> None:
    ein = tax_number()
    await desk.fault("core", "open_account", "refuse", times=1)

    with pytest.raises(ProviderRefused) as refused:
        await desk.onboard(application(business=business(ein=ein)))

    listed = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(limit=1))
    customer = listed["data"][0]
    assert refused.value.extra == {
        "customer_id": customer["customer_id"],
        "reason_detail": "refused: The bank refuses.",
    }
    assert customer["status"] == "denied"
    [issue] = customer["issues"]
    assert issue["code"] == "provider_refused"
    assert issue["detail"] == "A provider would not take the customer. refused: The bank refuses."
    records = await desk.truth("customers", customer["customer_id"])
    assert {(row["api"], row["status"]) for row in records} == {
        ("identity", "canceled"),
        ("core", "closed"),
    }
    assert await desk.truth("external-accounts", customer["customer_id"]) == []
    await desk.until_quiet()
    assert "customer.denied" in desk.types_of(customer["customer_id"])
    again = await desk.onboard(application(business=business(ein=ein)))
    assert again["status"] == "approved"


async def test_a_refused_compensation_is_kept_and_shown_to_the_operator(desk: Desk) -> None:
    await desk.fault("core", "open_account", "refuse", times=1)
    await desk.fault("core", "close_external_account", "refuse", times=1)

    with pytest.raises(ProviderRefused):
        await desk.onboard(application())

    refused = ListSagaSteps(kind=StepKind.REFUSED)
    shown = (await desk.ask(LIST_STEPS, refused, OPERATOR))["data"]["items"]
    [kept] = [step for step in shown if step["step"] == "close_external_account"]
    assert kept["refusal_code"] == "refused: The bank refuses."
    settling = SettleStep(saga_id=kept["saga_id"], step=kept["step"], reason="Closed by hand")
    await desk.ask(SETTLE_STEP, settling, OPERATOR)
    shown = (await desk.ask(LIST_STEPS, refused, OPERATOR))["data"]["items"]
    assert kept not in shown
    listed = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(limit=1))
    records = await desk.truth("customers", listed["data"][0]["customer_id"])
    assert {row["status"] for row in records} == {"canceled", "closed"}, "the rest is taken back"


async def test_what_is_anothers_does_not_exist(desk: Desk) -> None:
    result = await desk.onboard(application())
    customer_id, account_id = (result["business"][k] for k in ("customer_id", "account_id"))
    stranger = partner("stranger")

    with pytest.raises(NotFound):
        await desk.customer(customer_id, stranger)
    with pytest.raises(NotFound):
        await desk.ask(table.FIND_ACCOUNT_OWNER, FindAccountOwner(account_id=account_id), stranger)
    with pytest.raises(NotFound):
        await desk.ask(table.GET_CUSTOMER, GetCustomer(customer_id="acc_1"))
    assert (await desk.ask(table.LIST_CUSTOMERS, ListCustomers(), stranger))["data"] == []
    owned = await desk.ask(table.LIST_OWNED_ACCOUNTS, ListOwnedAccounts(), stranger)
    assert owned["data"] == {"accounts": [], "next_after": None}
    found = await desk.ask(table.FIND_CUSTOMER, FindCustomer(customer_id=customer_id), stranger)
    assert found["data"]["tenant"] == "demo"
    assert found["data"]["is_final"] is False


async def test_a_customers_key_sees_its_own_accounts_only(desk: Desk) -> None:
    mine, other = await desk.onboard(application()), await desk.onboard(application())
    principal = Principal(
        tenant="demo",
        tenant_name="Demo",
        family=Family.CUSTOMER,
        subscription_key="sub_customer",
        customer_id=mine["business"]["customer_id"],
    )

    owned = await desk.ask(table.LIST_OWNED_ACCOUNTS, ListOwnedAccounts(), principal)

    assert [a["account_id"] for a in owned["data"]["accounts"]] == [mine["business"]["account_id"]]
    with pytest.raises(NotFound):
        await desk.ask(
            table.FIND_ACCOUNT_OWNER,
            FindAccountOwner(account_id=other["business"]["account_id"]),
            principal,
        )


async def test_owned_accounts_come_in_pages_that_miss_nothing(desk: Desk) -> None:
    tenant = partner("pages")
    for _ in range(3):
        await desk.onboard(application(), principal=tenant)

    pages: list[list[str]] = []
    after: str | None = None
    while not pages or after is not None:
        command = ListOwnedAccounts(after=after, limit=2)
        page = (await desk.ask(table.LIST_OWNED_ACCOUNTS, command, tenant))["data"]
        pages.append([account["account_id"] for account in page["accounts"]])
        after = page["next_after"]

    assert [len(page) for page in pages] == [2, 1]
    everything = [account_id for page in pages for account_id in page]
    assert everything == sorted(everything)


async def test_customers_are_listed_newest_first_with_total_and_filter(desk: Desk) -> None:
    tenant = partner("lists")
    for ending in ("1111", REVIEW, "1111"):
        await desk.onboard(application(business=business(ein=tax_number(ending))), principal=tenant)

    first = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(limit=2), tenant)
    filtered = await desk.ask(
        table.LIST_CUSTOMERS, ListCustomers.model_validate({"status": "pending_review"}), tenant
    )
    beyond = await desk.ask(table.LIST_CUSTOMERS, ListCustomers(page=9), tenant)

    assert [c["status"] for c in first["data"]] == ["approved", "pending_review"]
    assert first["pagination"] == {"limit": 2, "total": 3, "page": 1}
    assert len(filtered["data"]) == 1
    assert beyond["data"] == []
    assert beyond["pagination"]["total"] == 3


async def test_a_closed_account_is_shown_as_closed(desk: Desk) -> None:
    result = await desk.onboard(application())
    customer_id, account_id = (result["business"][k] for k in ("customer_id", "account_id"))

    await desk.bank("POST", f"/simulate/accounts/{account_id}/close")

    async def closed() -> bool:
        (account,) = (await desk.customer(customer_id))["accounts"]
        return bool(account["status"] == "closed")

    await eventually(closed)
