"""Onboarding with both providers at Increase: each step has one effect under every fault, and validation decides.

The handlers run in the test's own process over the real database and the fake of Increase, whose records are counted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deploy.local.services import SERVICES
from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.errors import ProviderRefused
from libs.contracts.model import Model
from libs.contracts.operation import Operation
from libs.contracts.result import Result
from libs.providers.feed_entries import FeedCursor
from libs.providers.outcomes import Reason, Refused
from tests.integration.onboarding.desk import (
    DOCUMENTS,
    GOOD,
    REVIEW,
    application,
    bank_account,
    business,
    open_desk,
    person,
    tax_number,
)
from tests.integration.onboarding.increase_bench import Bench, bench
from tests.integration.onboarding.test_crashes import (
    ADDING,
    BUSINESS_UPDATED,
    DENYING,
    OPENING,
    PERSON_UPDATED,
    UPDATING,
    VERIFYING,
)
from tests.support.bank_at_increase import BankAtIncrease
from tests.support.database_life import distrusted, missing_records
from tests.support.increase_bank.faults import FaultKind
from tests.support.infrastructure import Infrastructure
from tests.support.stack import running_stack
from tests.support.waiting import eventually

__all__ = ["bench"]

ALL_KINDS: tuple[FaultKind, ...] = (
    "rate_limit",
    "error",
    "drop",
    "duplicate_reply",
    "key_conflict",
    "fail_after_success",
    "accept_then_drop",
)


def ids_of(result: Result) -> Any:
    assert isinstance(result.data, Model)
    return result.data.model_dump()


def two_persons(ending: str = GOOD) -> list[dict[str, Any]]:
    return [
        person(tin=tax_number(ending)),
        person(first_name="Bob", controller=False, ownership_percentage=10),
    ]


def everything_once(bench: Bench, result: Result) -> None:
    (entity,) = bench.truth("entity")
    (account,) = bench.truth("account")
    (number,) = bench.truth("account_number")
    (external,) = bench.truth("external_account")
    ids = ids_of(result)
    assert entity["description"] == ids["business"]["customer_id"]
    assert len(entity["corporation"]["beneficial_owners"]) == 1
    assert (account["entity_id"], account["status"]) == (entity["id"], "open")
    assert ids["business"]["account_id"] == account["id"]
    assert ids["business"]["account_number"] == number["account_number"]
    assert ids["external_bank_account"]["external_bank_account_id"] == external["id"]


async def test_an_onboarding_that_is_stopped_everywhere_has_one_effect_each(bench: Bench) -> None:
    result = await bench.crash_and_resume(
        [*VERIFYING, *OPENING], table.ONBOARD_CUSTOMER, application()
    )

    assert ids_of(result)["status"] == "approved"
    everything_once(bench, result)


async def test_a_customer_that_is_new_while_the_database_is_in_doubt_is_not_missed(
    bench: Bench,
) -> None:
    """What Increase has of it already is read by steps that send nothing."""
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        result = await bench.carry_out(table.ONBOARD_CUSTOMER, application(two_persons()))
        command = UpdateBusiness.model_validate(
            {"customer_id": ids_of(result)["business"]["customer_id"], "business": {"dba": "New"}}
        )
        await bench.carry_out(table.UPDATE_BUSINESS, command)
        missing = await missing_records(bench.database)

    everything_once(bench, result)
    assert missing == []


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_an_onboarding_has_one_effect_each_under_every_fault(
    bench: Bench, kind: FaultKind
) -> None:
    for operation in (
        "POST /entities",
        "POST /accounts",
        "POST /account_numbers",
        "POST /external_accounts",
    ):
        bench.fault(operation, kind)

    result = await bench.until_final(table.ONBOARD_CUSTOMER, application(two_persons()))

    assert ids_of(result)["status"] == "approved"
    everything_once(bench, result)


async def test_a_refused_onboarding_is_taken_back_wherever_it_is_stopped(bench: Bench) -> None:
    bench.fault("POST /account_numbers", "refuse")

    with pytest.raises(ProviderRefused):
        await bench.crash_and_resume(DENYING, table.ONBOARD_CUSTOMER, application())

    assert await bench.status() == "denied"
    assert [entity["status"] for entity in bench.truth("entity")] == ["archived"]
    assert [account["status"] for account in bench.truth("account")] == ["closed"]
    assert [account["status"] for account in bench.truth("external_account")] == ["archived"]


@pytest.mark.parametrize("whose", ["business", "person"])
async def test_what_is_invalid_is_corrected_by_an_update_and_opened(
    bench: Bench, whose: str
) -> None:
    wrong = {"ein": tax_number(DOCUMENTS)} if whose == "business" else {}
    persons = two_persons(GOOD if whose == "business" else DOCUMENTS)
    result = await bench.carry_out(
        table.ONBOARD_CUSTOMER, application(persons, business=business(**wrong))
    )
    ids = ids_of(result)
    before = await bench.status()
    command: Any = UpdateBusiness.model_validate(
        {"customer_id": ids["business"]["customer_id"], "business": {"ein": tax_number()}}
    )
    operation: Operation[Any, Any] = table.UPDATE_BUSINESS
    if whose == "person":
        command = UpdatePerson.model_validate(
            {"person_id": ids["persons"][0]["customer_id"], "tin": tax_number()}
        )
        operation = table.UPDATE_PERSON

    await bench.carry_out(operation, command)
    updated = await bench.status()
    cursor = await bench.follow(FeedCursor(0))
    approved = await bench.status()
    await bench.follow(cursor)

    assert (before, updated, approved) == ("awaiting_documents", "awaiting_documents", "approved")
    assert len(bench.truth("account")) == len(bench.truth("account_number")) == 1
    (entity,) = bench.truth("entity")
    assert entity["validation"]["status"] == "valid"
    assert (await bench.events()).count("customer.approved") == 1


async def test_validation_that_takes_time_decides_by_the_feed(bench: Bench) -> None:
    await bench.carry_out(
        table.ONBOARD_CUSTOMER, application(business=business(ein=tax_number(REVIEW)))
    )
    before, first = await bench.status(), await bench.events()
    cursor = await bench.follow(FeedCursor(0))
    (entity,) = bench.truth("entity")
    store = bench.running.bank.store
    with store.writing():
        store.save(entity | {"validation": {"status": "valid", "issues": []}})
        store.save(entity | {"validation": {"status": "valid", "issues": []}})

    await bench.follow(cursor)

    assert (before, await bench.status()) == ("pending_review", "approved")
    assert len(bench.truth("account")) == 1
    told = Counter(await bench.events()) - Counter(first)
    assert (told["customer.approved"], told["person.updated"]) == (1, 1)


async def test_a_customer_whose_entity_is_disabled_is_in_review_until_it_is_enabled(
    bench: Bench,
) -> None:
    await bench.carry_out(table.ONBOARD_CUSTOMER, application())
    before, first = await bench.status(), await bench.events()
    cursor = await bench.follow(FeedCursor(0))

    bench.set_entity_status("disabled")
    cursor = await bench.follow(cursor)
    meanwhile = await bench.status()
    bench.set_entity_status("active")
    await bench.follow(cursor)

    statuses = before, meanwhile, await bench.status()
    assert statuses == ("approved", "pending_review", "approved")
    told = Counter(await bench.events()) - Counter(first)
    assert (told["customer.pending_review"], told["customer.approved"]) == (1, 1)
    assert len(bench.truth("account")) == 1


async def test_an_approved_customer_whose_entity_is_archived_is_denied(bench: Bench) -> None:
    await bench.carry_out(table.ONBOARD_CUSTOMER, application())
    before, first = await bench.status(), await bench.events()
    cursor = await bench.follow(FeedCursor(0))

    bench.set_entity_status("archived")
    await bench.follow(cursor)

    assert (before, await bench.status()) == ("approved", "denied")
    told = Counter(await bench.events()) - Counter(first)
    assert (told["customer.pending_review"], told["customer.denied"]) == (1, 1)


async def test_updates_that_are_stopped_everywhere_are_made_once(bench: Bench) -> None:
    ids = ids_of(await bench.carry_out(table.ONBOARD_CUSTOMER, application(two_persons())))
    of_business = UpdateBusiness.model_validate(
        {
            "customer_id": ids["business"]["customer_id"],
            "business": {"business_name": "After", "phone": "212-555-0177"},
        }
    )
    becomes_owner = UpdatePerson.model_validate(
        {"person_id": ids["persons"][1]["customer_id"], "ownership_percentage": 30}
    )
    ceases = UpdatePerson.model_validate(
        {"person_id": ids["persons"][1]["customer_id"], "ownership_percentage": 5}
    )
    person_points = [*UPDATING, *PERSON_UPDATED]

    await bench.crash_and_resume([*UPDATING, *BUSINESS_UPDATED], table.UPDATE_BUSINESS, of_business)
    await bench.crash_and_resume(person_points, table.UPDATE_PERSON, becomes_owner)
    (became,) = bench.truth("entity")
    await bench.crash_and_resume(person_points, table.UPDATE_PERSON, ceases)
    (ceased,) = bench.truth("entity")

    assert became["corporation"]["name"] == "After"
    names = [owner["individual"]["name"] for owner in became["corporation"]["beneficial_owners"]]
    assert names == ["Ada Byron", "Bob Byron"]
    assert len(ceased["corporation"]["beneficial_owners"]) == 1
    assert len(bench.truth("entity_beneficial_owner")) == 2
    identity_ids = await bench.rows("SELECT identity_id FROM persons WHERE tenant = :tenant")
    assert {row.identity_id for row in identity_ids} == {
        ceased["corporation"]["beneficial_owners"][0]["id"],
        f"{ceased['id']}/{ids['persons'][1]['customer_id']}",
    }


async def test_an_external_account_that_is_stopped_everywhere_is_added_once(bench: Bench) -> None:
    ids = ids_of(await bench.carry_out(table.ONBOARD_CUSTOMER, application()))
    known = ids["external_bank_account"]["external_bank_account_id"]
    command = AddExternalBankAccount.model_validate(
        {"external_bank_account_id": known, "external_bank_account": bank_account()}
    )

    added = await bench.crash_and_resume(ADDING, table.ADD_EXTERNAL_BANK_ACCOUNT, command)

    held = await bench.rows(
        "SELECT external_account_id, is_primary FROM external_accounts WHERE tenant = :tenant"
        " ORDER BY created_at"
    )
    assert [tuple(row) for row in held] == [
        (known, False),
        (ids_of(added)["external_bank_account_id"], True),
    ]
    assert len(bench.truth("external_account")) == 2


async def test_a_person_whose_change_core_banking_refuses_keeps_an_identity_that_exists(
    bench: Bench,
) -> None:
    elsewhere = bench.with_core_elsewhere()
    ids = ids_of(
        await bench.carry_out(
            table.ONBOARD_CUSTOMER,
            application(
                [person(), person(first_name="Bob", controller=False, ownership_percentage=30)]
            ),
        )
    )
    command = UpdatePerson.model_validate(
        {"person_id": ids["persons"][1]["customer_id"], "ownership_percentage": 10}
    )
    elsewhere.answers["update_customer"] += [Refused(Reason.PROVIDER_REFUSED, "no")]

    with pytest.raises(ProviderRefused):
        await bench.carry_out(table.UPDATE_PERSON, command)

    (entity,) = bench.truth("entity")
    owners = {owner["id"] for owner in entity["corporation"]["beneficial_owners"]}
    held = await bench.rows("SELECT identity_id FROM persons WHERE tenant = :tenant")
    assert len(owners) == 2
    assert {row.identity_id for row in held} == owners


async def test_a_process_at_increase_follows_its_decisions_and_survives_being_killed(
    infrastructure: Infrastructure, tmp_path: Path
) -> None:
    environment = infrastructure.create()
    only_onboarding = [service for service in SERVICES if service.name == "onboarding"]
    async with (
        running_stack(environment, tmp_path, only_onboarding, bank="increase-fake") as stack,
        open_desk(stack) as desk,
    ):
        command = application(two_persons(), business=business(ein=tax_number(REVIEW)))
        customer_id = (await desk.onboard(command))["business"]["customer_id"]
        await stack.kill("onboarding")
        await stack.restart("onboarding")
        bank = BankAtIncrease(
            desk.http, stack.increase_url, stack.environment.secrets.increase_fake_key
        )
        await bank.decide(customer_id, "approved")

        async def approved() -> bool:
            status: str = (await desk.customer(customer_id))["status"]
            return status == "approved"

        await eventually("the decision of the bank is applied", approved)
        await desk.until_quiet()
        violations = await bank.violations()
        checked = await desk.rows("SELECT checked_at FROM database_life")
    infrastructure.drop(environment)

    assert violations == []
    assert checked
