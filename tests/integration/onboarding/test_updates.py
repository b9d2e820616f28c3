"""Updates of businesses and persons, and further external bank accounts."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.errors import AlreadyExists, Invalid, InvalidState, NotFound, ProviderRefused
from libs.contracts.principal import Principal
from tests.integration.onboarding.desk import (
    DENIED,
    REVIEW,
    Desk,
    application,
    bank_account,
    business,
    eventually,
    partner,
    person,
    tax_number,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def update_business(
    desk: Desk, customer_id: str, principal: Principal | None = None, **fields: Any
) -> None:
    command = UpdateBusiness.model_validate({"customer_id": customer_id, "business": fields})
    assert await desk.send(table.UPDATE_BUSINESS, command, principal) is None


async def update_person(
    desk: Desk, person_id: str, principal: Principal | None = None, **fields: Any
) -> None:
    command = UpdatePerson.model_validate({"person_id": person_id, **fields})
    assert await desk.send(table.UPDATE_PERSON, command, principal) is None


async def add_account(
    desk: Desk, known_id: str, account: dict[str, Any], principal: Principal | None = None
) -> str:
    command = AddExternalBankAccount.model_validate(
        {"external_bank_account_id": known_id, "external_bank_account": account}
    )
    added = await desk.send(table.ADD_EXTERNAL_BANK_ACCOUNT, command, principal)
    return str(added["external_bank_account_id"])


async def fields_at(desk: Desk, api: str, customer_id: str) -> dict[str, Any]:
    (row,) = [r for r in await desk.truth("customers", customer_id) if r["api"] == api]
    fields: dict[str, Any] = row["fields"]
    return fields


async def test_an_update_of_a_business_is_merged_and_reaches_both_providers(desk: Desk) -> None:
    result = await desk.onboard(application(business=business(dba="Tools")))
    customer_id = result["business"]["customer_id"]

    await update_business(
        desk, customer_id, business_name="Acme Two", dba=None, business_address={"city": "Troy"}
    )

    seen = (await desk.customer(customer_id))["business"]
    assert (seen["business_name"], seen["dba"]) == ("Acme Two", None)
    assert (seen["business_address"]["city"], seen["business_address"]["state"]) == ("Troy", "NY")
    assert seen["mailing_address"]["city"] == "Albany"
    for api in ("identity", "core"):
        fields = await fields_at(desk, api, customer_id)
        assert fields["business_name"] == "Acme Two"
        assert "dba" not in fields
        assert fields["business_address"]["city"] == "Troy"
        assert fields["business_address"]["street_1"] == "1 Main St"
    await desk.until_quiet()
    assert desk.types_of(customer_id).count("customer.updated") == 1


async def test_an_update_of_a_person_is_merged_and_reaches_both_providers(desk: Desk) -> None:
    result = await desk.onboard(application())
    person_id = result["persons"][0]["customer_id"]

    await update_person(
        desk,
        person_id,
        last_name="Lovelace",
        home_address={"street_2": "Flat 2"},
        employment_status="employed",
        ownership_percentage=Decimal("33.25"),
    )

    for api in ("identity", "core"):
        fields = await fields_at(desk, api, person_id)
        assert fields["last_name"] == "Lovelace"
        assert fields["home_address"]["street_2"] == "Flat 2"
        assert fields["home_address"]["city"] == "Albany"
        assert fields["employment_status"] == "employed"
        assert fields["ownership_percentage"] == 33.25
    seen = await desk.customer(result["business"]["customer_id"])
    assert seen["persons"][0]["last_name"] == "Lovelace"


async def test_an_update_that_changes_nothing_calls_no_provider_and_tells_nobody(
    desk: Desk,
) -> None:
    result = await desk.onboard(application(business=business(business_name="Same")))
    customer_id = result["business"]["customer_id"]
    await desk.until_quiet()
    told = desk.types_of(customer_id)
    await desk.fault("identity", "*", "error")
    await desk.fault("core", "*", "error")

    await update_business(desk, customer_id)
    await update_business(desk, customer_id, business_name=" Same ", dba=None)
    await update_person(desk, result["persons"][0]["customer_id"])

    await desk.until_quiet()
    assert desk.types_of(customer_id) == told


async def test_the_merged_whole_has_to_be_valid(desk: Desk) -> None:
    result = await desk.onboard(
        application(persons=[person(), person(controller=False, ownership_percentage=40)])
    )
    customer_id = result["business"]["customer_id"]
    controller, other = (p["customer_id"] for p in result["persons"])

    with pytest.raises(Invalid) as abroad:
        await update_business(desk, customer_id, business_address={"state": "Ontario"})
    with pytest.raises(Invalid) as leaderless:
        await update_person(desk, controller, controller=False)
    with pytest.raises(Invalid) as too_much:
        await update_person(desk, other, ownership_percentage=41)

    assert abroad.value.errors[0]["loc"] == ["body", "business", "business_address", "state"]
    assert "controller" in leaderless.value.errors[0]["msg"]
    assert "100" in too_much.value.errors[0]["msg"]
    seen = await desk.customer(customer_id)
    assert seen["business"]["business_address"]["state"] == "NY"


async def test_a_refusal_of_identity_changes_nothing_anywhere(desk: Desk) -> None:
    ein = tax_number()
    result = await desk.onboard(application(business=business(ein=ein)))
    customer_id = result["business"]["customer_id"]
    new = tax_number(DENIED)

    with pytest.raises(ProviderRefused) as refused:
        await update_business(desk, customer_id, ein=new)

    assert refused.value.extra == {
        "reason_detail": "identity_refused: The new number could not be verified."
    }

    for api in ("identity", "core"):
        assert (await fields_at(desk, api, customer_id))["ein"] == ein
    other = await desk.onboard(application(business=business(ein=new)))
    assert other["status"] == "denied", "the EIN that was refused is held by nobody"


async def test_a_refusal_of_core_restores_identity(desk: Desk) -> None:
    ein, new = tax_number(), tax_number()
    result = await desk.onboard(application(business=business(ein=ein, dba="Before")))
    customer_id = result["business"]["customer_id"]
    await desk.fault("core", "update_customer", "refuse", times=1)

    with pytest.raises(ProviderRefused) as refused:
        await update_business(
            desk, customer_id, ein=new, dba=None, business_address={"street_2": "Floor 3"}
        )

    assert refused.value.extra == {"reason_detail": "refused: The bank refuses."}

    identity = await fields_at(desk, "identity", customer_id)
    assert (identity["ein"], identity["dba"]) == (ein, "Before")
    assert "street_2" not in identity["business_address"]
    assert (await desk.customer(customer_id))["business"]["dba"] == "Before"
    other = await desk.onboard(application(business=business(ein=new)))
    assert other["status"] == "approved", "the EIN that was not taken is free"
    await desk.until_quiet()
    assert "customer.updated" not in desk.types_of(customer_id)


async def test_an_ein_of_another_customer_cannot_be_taken(desk: Desk) -> None:
    taken = tax_number()
    holder = await desk.onboard(application(business=business(ein=taken)))
    result = await desk.onboard(application())

    with pytest.raises(AlreadyExists) as refused:
        await update_business(desk, result["business"]["customer_id"], ein=taken)

    assert refused.value.extra == {"customer_id": holder["business"]["customer_id"]}


async def test_an_update_that_has_to_be_looked_at_suspends_and_a_decision_restores(
    desk: Desk,
) -> None:
    result = await desk.onboard(application())
    customer_id = result["business"]["customer_id"]

    await update_business(desk, customer_id, ein=tax_number(REVIEW))

    suspended = await desk.customer(customer_id)
    assert suspended["status"] == "pending_review"
    await desk.bank(
        "POST", "/simulate/identity/decisions", customer_id=customer_id, decision="approved"
    )

    async def approved() -> bool:
        return bool((await desk.customer(customer_id))["status"] == "approved")

    await eventually(approved)
    await desk.until_quiet()
    assert len(await desk.truth("accounts", customer_id)) == 1, "no second account"
    assert desk.types_of(customer_id).count("customer.pending_review") == 1
    assert desk.types_of(customer_id).count("customer.approved") == 2


async def test_an_application_that_waits_is_opened_with_what_was_updated_meanwhile(
    desk: Desk,
) -> None:
    result = await desk.onboard(application(business=business(ein=tax_number(REVIEW))))
    customer_id = result["business"]["customer_id"]

    await update_business(desk, customer_id, business_name="Renamed")
    await desk.bank(
        "POST", "/simulate/identity/decisions", customer_id=customer_id, decision="approved"
    )

    async def approved() -> bool:
        return bool((await desk.customer(customer_id))["status"] == "approved")

    await eventually(approved)
    assert (await fields_at(desk, "core", customer_id))["business_name"] == "Renamed"


async def test_a_decision_that_an_update_overtakes_still_opens_the_account(desk: Desk) -> None:
    result = await desk.onboard(application(business=business(ein=tax_number(REVIEW))))
    customer_id = result["business"]["customer_id"]
    await desk.fault("identity", "list_events", "latency", milliseconds=1500, times=1)
    await asyncio.sleep(0.3)  # the tailer is inside the slow read now

    await desk.bank(
        "POST", "/simulate/identity/decisions", customer_id=customer_id, decision="approved"
    )
    await update_business(desk, customer_id, business_name="Renamed")

    async def approved() -> bool:
        return bool((await desk.customer(customer_id))["status"] == "approved")

    await eventually(approved)
    assert len(await desk.truth("accounts", customer_id)) == 1


async def test_a_denied_customer_is_not_changed_any_more(desk: Desk) -> None:
    result = await desk.onboard(application(business=business(ein=tax_number(DENIED))))

    with pytest.raises(InvalidState):
        await update_business(desk, result["business"]["customer_id"], dba="No")
    with pytest.raises(InvalidState):
        await update_person(desk, result["persons"][0]["customer_id"], last_name="No")


async def test_what_is_anothers_cannot_be_changed(desk: Desk) -> None:
    result = await desk.onboard(application())
    known = result["external_bank_account"]["external_bank_account_id"]
    stranger = partner("stranger")

    with pytest.raises(NotFound):
        await update_business(desk, result["business"]["customer_id"], stranger, dba="No")
    with pytest.raises(NotFound):
        await update_person(desk, result["persons"][0]["customer_id"], stranger, last_name="No")
    with pytest.raises(NotFound):
        await add_account(desk, known, bank_account(), stranger)
    with pytest.raises(NotFound):
        await update_business(desk, str(uuid4()), dba="No")
    with pytest.raises(NotFound):
        await update_person(desk, "not-a-uuid", last_name="No")


async def test_updates_at_once_are_carried_out_one_after_the_other(desk: Desk) -> None:
    result = await desk.onboard(application())
    customer_id = result["business"]["customer_id"]
    person_id = result["persons"][0]["customer_id"]
    await desk.fault("core", "update_customer", "latency", milliseconds=50)

    await asyncio.gather(
        *(update_business(desk, customer_id, dba=f"Name {number}") for number in range(8)),
        *(update_person(desk, person_id, last_name=f"Name {number}") for number in range(8)),
    )

    await desk.until_quiet()
    for subject in (customer_id, person_id):
        assert await fields_at(desk, "identity", subject) == await fields_at(desk, "core", subject)
    ours = (await desk.customer(customer_id))["business"]["dba"]
    assert (await fields_at(desk, "core", customer_id))["dba"] == ours
    numbers = [e["sequence"] for e in desk.events if e["resource_id"] == customer_id]
    assert numbers == list(range(1, 11)), "created, approved and eight updates, in order"


async def test_an_added_external_account_becomes_the_primary_one(desk: Desk) -> None:
    result = await desk.onboard(application())
    customer_id = result["business"]["customer_id"]
    old = result["external_bank_account"]["external_bank_account_id"]

    new = await add_account(desk, old, bank_account())

    assert new != old
    at_bank = {
        row["external_account_id"]: row["primary"]
        for row in await desk.truth("external-accounts", customer_id)
    }
    assert at_bank == {old: False, new: True}
    seen = (await desk.customer(customer_id))["external_bank_accounts"]
    assert [(a["external_bank_account_id"], a["primary"]) for a in seen] == [
        (new, True),
        (old, False),
    ]
    await desk.until_quiet()
    news = [(e["type"], e["sequence"]) for e in desk.events if e["resource_id"] == new]
    assert news == [("external_account.created", 1), ("external_account.primary_changed", 2)]


async def test_an_external_account_is_linked_once(desk: Desk) -> None:
    account = bank_account()
    result = await desk.onboard(application(external_bank_account=account))
    known = result["external_bank_account"]["external_bank_account_id"]

    with pytest.raises(AlreadyExists):
        await add_account(desk, known, {**account, "bank_name": "Another Name"})

    other = await desk.onboard(application(external_bank_account=account))
    assert other["status"] == "approved", "another customer may have it too"


async def test_the_old_external_account_names_the_customer_too(desk: Desk) -> None:
    result = await desk.onboard(application())
    first = result["external_bank_account"]["external_bank_account_id"]

    second = await add_account(desk, first, bank_account())
    third = await add_account(desk, first, bank_account())

    assert len({first, second, third}) == 3
    with pytest.raises(NotFound):
        await add_account(desk, "ext_unknown", bank_account())
