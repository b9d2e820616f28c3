"""Entities, accounts and external accounts: each made once, changes found by reading back."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.outcomes import Absent, Accepted, Refused, Unknown
from libs.providers.writing import ProviderWrite
from services.onboarding.ports import CoreCustomer, KnownPerson, OpenedAccount
from tests.integration.onboarding.desk import address, bank_account, business
from tests.support.increase_bank.faults import FaultKind
from tests.unit.onboarding.increase.conftest import Increase, a_person, done, soon


async def test_an_entity_says_whose_it_is_and_shows_no_number_but_the_ein(
    increase: Increase,
) -> None:
    customer_id, person = uuid4(), a_person(middle_name="King", work_title="Head")
    told = Business.model_validate(
        business(website="https://acme-tools.com", business_address=address(street_2="Floor 2"))
    )

    await done(increase.identity.verify_business(customer_id, told, [person]))

    (entity,) = increase.objects("entity")
    corporation = entity["corporation"]
    assert entity["description"] == str(customer_id)
    assert corporation["legal_identifier"]["value"] == told.ein
    assert corporation["address"]["line2"] == "Floor 2"
    (owner,) = corporation["beneficial_owners"]
    assert owner["individual"]["name"] == "Ada King Byron"
    assert (owner["prongs"], owner["company_title"]) == (["control", "ownership"], "Head")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"business_name": "Acme Ltd", "dba": "Acme"}, {"name": "Acme Ltd"}),
        ({"email": "new@acme-tools.com"}, {"email": "new@acme-tools.com"}),
        ({"email": "new@müller.de"}, {"email": "new@xn--mller-kva.de"}),
        ({"website": "https://acme.example"}, {"website": "https://acme.example"}),
        ({"naics_code": "5416"}, {"industry_code": "5416"}),
        ({"formation_state": "NY"}, {"incorporation_state": "NY"}),
        (
            {"ein": "123456789"},
            {
                "legal_identifier": {
                    "category": "us_employer_identification_number",
                    "value": "123456789",
                }
            },
        ),
        (
            {"business_address": address()},
            {
                "address": {
                    "line1": "1 Main St",
                    "line2": None,
                    "city": "Albany",
                    "state": "NY",
                    "zip": "12207",
                    "country": "US",
                }
            },
        ),
    ],
)
async def test_a_change_of_a_business_is_found_once_it_is_made(
    increase: Increase, changes: dict[str, Any], shown: dict[str, Any]
) -> None:
    told = Business.model_validate(business(business_address=address(street_2="Floor 2")))
    made = await done(increase.identity.verify_business(uuid4(), told, [a_person()]))
    write = increase.identity.update_business(made.identity_id, changes)
    increase.fault("PATCH /entities/{id}", "fail_after_success")

    before = await write.find(uuid4(), soon())
    lost = await write.send(uuid4(), soon())
    found = await write.find(uuid4(), soon())

    assert before == Absent()
    assert isinstance(lost, Unknown)
    assert isinstance(found, Accepted)
    (entity,) = increase.objects("entity")
    assert entity["corporation"].items() >= shown.items()
    assert not write.capabilities.takes_keys


LONG_EMAIL = f"office@{'.'.join(['acme' * 12] * 4)}.com"


@pytest.mark.parametrize(
    ("email", "at_increase"),
    [
        ("office@acme-tools.com", "office@acme-tools.com"),
        ("info@xn--mller-kva.de", "info@xn--mller-kva.de"),
        ("info@müller.de", "info@xn--mller-kva.de"),
        ("büro@acme-tools.com", None),
        (LONG_EMAIL, None),
    ],
)
async def test_an_entity_has_the_email_address_with_its_domain_in_ascii_or_none(
    increase: Increase, email: str, at_increase: str | None
) -> None:
    told = Business.model_validate(business(email=email))

    await done(increase.identity.verify_business(uuid4(), told, [a_person()]))

    (entity,) = increase.objects("entity")
    assert entity["corporation"]["email"] == at_increase


async def test_names_and_lines_of_addresses_are_told_up_to_200_characters(
    increase: Increase,
) -> None:
    long, cut = "x" * 199 + " " + "y" * 55, "x" * 199
    abroad = address(country="CA", street_1=long, street_2=long, city=long, state=long)
    told = Business.model_validate(
        business(business_name=long, business_address={**abroad, "zip_code": long})
    )
    person = a_person(first_name=long, home_address=abroad)
    shown = {"line1": cut, "line2": cut, "city": cut, "state": cut, "country": "CA"}
    made = await done(increase.identity.verify_business(uuid4(), told, [person]))

    changes = {"business_name": long.upper(), "business_address": abroad}
    write = increase.identity.update_business(made.identity_id, changes)
    (before,) = increase.objects("entity")
    await done(write)
    found = await write.find(uuid4(), soon())
    as_person = increase.identity.verify_person(uuid4(), uuid4(), [person], 0, made.identity_id)

    assert isinstance(found, Accepted)
    assert isinstance(await as_person.send(uuid4(), soon()), Accepted)
    corporation = before["corporation"]
    (owner,) = corporation["beneficial_owners"]
    assert (corporation["name"], owner["individual"]["name"]) == (cut, cut)
    assert corporation["address"] == shown | {"zip": cut}
    assert owner["individual"]["address"] == shown | {"zip": "12207"}
    (after,) = increase.objects("entity")
    assert after["corporation"]["name"] == cut.upper()
    assert after["corporation"]["address"] == shown | {"zip": "12207"}


@pytest.mark.parametrize("email", ["büro@acme-tools.com", LONG_EMAIL])
async def test_a_change_to_an_email_address_that_increase_does_not_take_is_ours_only(
    increase: Increase, email: str
) -> None:
    entity_id, _ = await increase.verified([a_person()])
    before = increase.objects("entity")

    await done(increase.identity.update_business(entity_id, {"email": email}))

    assert increase.objects("entity") == before


async def test_the_entity_of_an_identity_is_the_customer_at_core_banking(
    increase: Increase,
) -> None:
    person = a_person()
    entity_id, (known,) = await increase.verified([person])
    core, told = increase.core, Business.model_validate(business())
    seen = len(increase.objects("entity"))

    answers = [
        await done(core.create_business(uuid4(), told, [person], entity_id)),
        await done(core.create_person(known.our_id, uuid4(), [person], 0, entity_id, known.id)),
        await done(core.change_business(entity_id, {"email": "new@acme-tools.com"})),
        await done(core.change_person(known, {"last_name": "Lovelace"}, person, "another id")),
    ]

    assert answers == [
        CoreCustomer(each) for each in (entity_id, known.id, entity_id, "another id")
    ]
    assert len(increase.objects("entity")) == seen
    assert "Lovelace" not in str(increase.objects("entity"))


@pytest.mark.parametrize("operation", ["POST /accounts", "POST /account_numbers"])
@pytest.mark.parametrize(
    "kind", ["error", "drop", "key_conflict", "accept_then_drop", "rate_limit"]
)
async def test_an_account_is_opened_with_one_number_under_every_fault_between(
    increase: Increase, operation: str, kind: FaultKind
) -> None:
    entity_id, _ = await increase.verified([a_person()])
    write, key = increase.core.open_account(entity_id, "Acme Tools"), uuid4()
    increase.fault(operation, kind)

    first = await write.send(key, soon())
    found = await write.find(key, soon())
    again = await write.send(key, soon())

    (account,) = increase.objects("account")
    (number,) = increase.objects("account_number")
    opened = Accepted(OpenedAccount(account["id"], number["account_number"]))
    assert again == opened
    assert await write.find(key, soon()) == opened
    assert found in (Absent(), opened)
    assert isinstance(first, Unknown) or first == opened


async def test_a_customer_is_closed_with_its_accounts(increase: Increase) -> None:
    entity_id, _ = await increase.verified([a_person()])
    for _ in range(2):
        await done(increase.core.open_account(entity_id, "Acme Tools"))
    close = increase.core.close_business(entity_id)
    increase.fault("POST /entities/{id}/archive", "error")
    key = uuid4()

    before = await close.find(key, soon())
    failed = await close.send(key, soon())
    closed = await close.send(key, soon())
    canceled = await done(increase.identity.cancel_business(entity_id))

    assert before == Absent()
    assert isinstance(failed, Unknown)
    assert isinstance(closed, Accepted)
    assert await close.find(key, soon()) == closed
    assert canceled.status == "canceled"
    assert {account["status"] for account in increase.objects("account")} == {"closed"}
    (entity,) = increase.objects("entity")
    assert entity["status"] == "archived"


async def test_an_account_that_cannot_be_closed_keeps_its_customer_open(
    increase: Increase,
) -> None:
    entity_id, _ = await increase.verified([a_person()])
    await done(increase.core.open_account(entity_id, "Acme Tools"))
    increase.fault("POST /accounts/{id}/close", "refuse")

    outcome = await increase.core.close_business(entity_id).send(uuid4(), soon())

    assert isinstance(outcome, Refused)
    (entity,) = increase.objects("entity")
    assert entity["status"] == "active"


async def test_what_increase_does_not_find_is_not_decided(increase: Increase) -> None:
    """It has made all that our writes name; under a key of another group it finds none of it."""
    one, gone = a_person(), "entity_of_another_group"
    owner = KnownPerson(uuid4(), "owner_of_another_group", gone)
    identity, core, renamed = increase.identity, increase.core, {"last_name": "Lovelace"}
    writes: list[ProviderWrite[Any]] = [
        identity.verify_person(uuid4(), uuid4(), [one], 0, gone),
        identity.update_business(gone, {"dba": "Acme"}),
        identity.update_business(gone, {"email": "new@acme-tools.com"}),
        identity.update_person(owner, {"phone": "+12125550199"}, one),
        identity.update_person(owner, renamed, a_person(**renamed)),
        identity.update_person(owner, {}, a_person(controller=False, ownership_percentage=5)),
        identity.cancel_business(gone),
        core.close_business(gone),
        core.close_external_account("external_account_of_another_group"),
    ]

    outcomes = [
        outcome
        for write in writes
        for outcome in (await write.send(uuid4(), soon()), await write.find(uuid4(), soon()))
    ]
    opened = await core.open_account(gone, "Acme Tools").send(uuid4(), soon())

    assert [one for one in [*outcomes, opened] if not isinstance(one, Unknown)] == []


async def test_an_external_account_is_archived_once(increase: Increase) -> None:
    account = ExternalBankAccount.model_validate(bank_account())
    linked = await done(increase.core.link_external_account("entity_any", account))
    close = increase.core.close_external_account(linked.external_account_id)
    increase.fault("PATCH /external_accounts/{id}", "accept_then_drop")

    before = await close.find(uuid4(), soon())
    lost = await close.send(uuid4(), soon())
    found = await close.find(uuid4(), soon())

    assert before == Absent()
    assert isinstance(lost, Unknown)
    assert isinstance(found, Accepted)
    (held,) = increase.objects("external_account")
    assert (held["status"], held["description"]) == ("archived", "First National, Acme Tools")
