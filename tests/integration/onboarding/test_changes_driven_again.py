"""Changes of a customer that are driven again: none overtakes another, and none is told as refused that has begun."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.errors import OutcomePending, ProviderRefused
from libs.contracts.result import Result
from libs.handling.parking import NeedsOperator
from libs.persistence import parking
from libs.providers.outcomes import Absent, Accepted, NotSent, Reason, Refused, Unknown
from services.onboarding.models import Verification
from services.onboarding.ports import CoreCustomer
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.resolving import resolve_step
from tests.integration.onboarding.desk import application, bank_account, business
from tests.integration.onboarding.handling import A_MOMENT, ONBOARDING, Handling
from tests.integration.onboarding.steps import ANN
from tests.integration.tables import finish
from tests.support.people import new_ein


async def test_a_change_does_not_overtake_one_that_waits_for_an_operator(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    customer_id = str(await handling.customer_id())
    changes = [
        UpdateBusiness.model_validate({"customer_id": customer_id, "business": {"dba": name}})
        for name in ("First", "Second")
    ]
    first = await handling.accept(table.UPDATE_BUSINESS.name)
    second = await handling.accept(table.UPDATE_BUSINESS.name)
    handling.bank.capabilities = A_MOMENT
    handling.bank.answers["update_customer"] += [Unknown("timed_out"), Absent()]

    with pytest.raises(OutcomePending):
        await handling.drive(first, changes[0])
    with pytest.raises(NeedsOperator):
        await handling.drive(first, changes[0])
    with pytest.raises(NeedsOperator):
        await handling.drive(second, changes[1])

    assert handling.bank.calls["update_customer"] == ["send", "find"]
    assert handling.bank.calls["update"] == ["send"], "nothing of the second one was sent"


@pytest.mark.parametrize(
    ("decision", "result"),
    [("absent", None), ("refused", None), ("done", {"core_id": "cus_changed"})],
)
async def test_a_change_is_not_abandoned_before_an_operator_has_decided_on_its_step(
    handling: Handling, decision: Resolution, result: dict[str, str] | None
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    change = UpdateBusiness.model_validate(
        {"customer_id": str(await handling.customer_id()), "business": {"dba": "Another"}}
    )
    update = await handling.accept(table.UPDATE_BUSINESS.name)
    unsent = await handling.why_not_abandoned(update)
    handling.bank.capabilities = A_MOMENT
    handling.bank.answers["update_customer"] += [Unknown("timed_out"), Absent()]
    with pytest.raises(OutcomePending):
        await handling.drive(update, change)
    with pytest.raises(NeedsOperator):
        await handling.drive(update, change)
    async with handling.database.transaction() as connection:
        await parking.park(connection, update, "Of the test.")
    saga_id = await handling.value(
        "SELECT DISTINCT saga_id FROM saga_steps WHERE command_id = :id", id=update.command_id
    )

    objection = await handling.why_not_abandoned(update)
    await resolve_step(
        handling.database,
        ANN,
        saga_id,
        "update_core",
        decision,
        reason="seen at the bank",
        transit_seconds=0.0,
        result=result,
    )

    assert unsent is None
    assert objection is not None
    assert f"bankside sagas resolve {saga_id} update_core --as" in objection
    assert await handling.why_not_abandoned(update) is None


async def test_a_change_does_not_overtake_one_that_was_parked_half_way_and_is_retried(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    customer_id = await handling.customer_id()
    changes = [
        UpdateBusiness.model_validate({"customer_id": str(customer_id), "business": {"dba": name}})
        for name in ("First", "Second")
    ]
    first = await handling.accept(table.UPDATE_BUSINESS.name)
    second = await handling.accept(table.UPDATE_BUSINESS.name)
    handling.bank.answers["update_customer"] += [NotSent("not_connected")]
    with pytest.raises(OutcomePending):
        await handling.drive(first, changes[0])
    await handling.order(first)
    async with handling.database.transaction() as connection:
        await parking.park(connection, first, "Of the test.")
        await parking.retry(connection, first.command_id)

    with pytest.raises(NeedsOperator):
        await handling.drive(second, changes[1])

    assert handling.bank.calls["update"] == ["send"], "nothing of the second one was sent"


async def test_of_a_new_identity_the_provider_is_asked_when_an_update_that_waited_goes_on(
    handling: Handling,
) -> None:
    """What the provider said meanwhile was about an identity that was not recorded, and it says it once."""
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    person = await handling.value("SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1")
    core_id = await handling.value("SELECT core_id FROM persons WHERE tenant = :tenant LIMIT 1")
    change = UpdatePerson.model_validate({"person_id": str(person), "ownership_percentage": 10})
    update = await handling.accept(table.UPDATE_PERSON.name)
    await handling.order(update)
    new = f"idn_new_{person}"
    bank = handling.bank
    bank.answers["update"] += [Accepted(Verification(new, Status.PENDING_REVIEW, 0))]
    bank.capabilities = A_MOMENT
    bank.answers["update_customer"] += [Unknown("timed_out"), Absent()]
    with pytest.raises(OutcomePending):
        await handling.drive(update, change)
    with pytest.raises(NeedsOperator):
        await handling.drive(update, change)
    bank.identities[new] = Verification(new, Status.APPROVED, 0)
    await handling.something_changed()

    bank.answers["update_customer"] += [Accepted(CoreCustomer(core_id))]
    await handling.drive(update, change)
    await finish(handling.database, update)
    assert await handling.status() == "pending_review"
    for _ in range(2):  # it takes its turn by itself
        await handling.drive_decisions()

    assert await handling.status() == "approved"


async def test_a_person_whose_change_is_refused_and_cannot_be_taken_back_has_the_identity_of_the_change(
    handling: Handling,
) -> None:
    """The identity before it has come to its end at the provider."""
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    person = await handling.value("SELECT person_id FROM persons WHERE tenant = :tenant")
    change = UpdatePerson.model_validate({"person_id": str(person), "ownership_percentage": 10})
    update = await handling.accept(table.UPDATE_PERSON.name)
    await handling.order(update)
    new, no = f"idn_new_{person}", Refused(Reason.PROVIDER_REFUSED, "no")
    handling.bank.answers["update"] += [Accepted(Verification(new, Status.APPROVED, 0)), no]
    handling.bank.answers["update_customer"] += [no]

    with pytest.raises(ProviderRefused):
        await handling.drive(update, change)

    assert handling.bank.calls["update"] == ["send", "send"]
    assert await handling.identity_of("person") == new


async def test_a_change_that_a_provider_may_have_is_not_refused_by_a_stricter_release(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    update = await handling.accept(table.UPDATE_BUSINESS.name)
    await handling.order(update)
    change = UpdateBusiness.model_validate(
        {"customer_id": str(await handling.customer_id()), "business": {"ein": new_ein()}}
    )
    handling.bank.answers["update_customer"] += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await handling.drive(update, change)
    # As a release before may have stored it, whose rule of telephone numbers was another.
    await handling.value(
        """UPDATE customers SET business = jsonb_set(business, '{phone}', '"+1999"') WHERE tenant = :tenant
        RETURNING customer_id"""
    )

    with pytest.raises(NeedsOperator, match=r"body\.business\.phone"):
        await handling.drive(update, change)
    assert len(await held(handling)) == 2

    await handling.value(
        "UPDATE saga_steps SET state = 'refused', refusal_code = 'no' WHERE name = 'update_identity'"
        " AND tenant = :tenant RETURNING name"
    )
    with pytest.raises(ProviderRefused):
        await handling.drive(update, change)
    assert len(await held(handling)) == 1


async def held(handling: Handling) -> list[bytes]:
    """The digests of the EINs that the customer holds."""
    async with handling.database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT ein_digest FROM ein_holds WHERE tenant = :tenant"),
            {"tenant": handling.principal.tenant},
        )
        return [row.ein_digest for row in rows]


@pytest.mark.parametrize("of_a_person", [False, True], ids=["business", "person"])
async def test_a_change_whose_answer_ended_the_customer_is_done_when_it_is_driven_again(
    handling: Handling, of_a_person: bool
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    party = "person" if of_a_person else "business"
    denied = Verification(await handling.identity_of(party), Status.DENIED, 3)
    handling.bank.answers["update"] += [Accepted(denied)]
    operation = table.UPDATE_PERSON if of_a_person else table.UPDATE_BUSINESS
    update = await handling.accept(operation.name)
    await handling.order(update)
    person = await handling.value("SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1")
    change: UpdatePerson | UpdateBusiness = (
        UpdatePerson.model_validate({"person_id": str(person), "ownership_percentage": 10})
        if of_a_person
        else UpdateBusiness.model_validate(
            {"customer_id": str(await handling.customer_id()), "business": {"dba": "New"}}
        )
    )
    await handling.drive(update, change)
    told = await handling.events()

    again = await handling.drive(update, change)

    assert await handling.status() == "denied"
    assert again == Result()
    assert await handling.events() == told


@pytest.mark.parametrize("kind", ["business", "person", "external account"])
async def test_a_change_that_has_begun_is_driven_to_its_end_though_the_customer_was_denied_before_it(
    handling: Handling, kind: str
) -> None:
    """A provider has it: an answer that it was refused would be wrong, and nothing would be known of an account that is
    linked.
    """
    await handling.drive(await handling.accept(ONBOARDING), application())
    change: UpdatePerson | UpdateBusiness | AddExternalBankAccount
    match kind:
        case "business":
            step, operation, events = "update", table.UPDATE_BUSINESS.name, ["customer.updated"]
            change = UpdateBusiness.model_validate(
                {"customer_id": str(await handling.customer_id()), "business": {"ein": new_ein()}}
            )
        case "person":
            step, operation, events = "update", table.UPDATE_PERSON.name, ["person.updated"]
            person = await handling.value(
                "SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1"
            )
            change = UpdatePerson.model_validate(
                {"person_id": str(person), "ownership_percentage": 10}
            )
        case _:
            step, operation = "link_external_account", table.ADD_EXTERNAL_BANK_ACCOUNT.name
            events = ["external_account.created", "external_account.primary_changed"]
            linked = await handling.value(
                "SELECT external_account_id FROM external_accounts WHERE tenant = :tenant"
            )
            change = AddExternalBankAccount.model_validate(
                {"external_bank_account_id": linked, "external_bank_account": bank_account()}
            )
    command = await handling.accept(operation)
    await handling.order(command)
    handling.bank.answers[step] += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await handling.drive(command, change)
    identity_id = await handling.identity_of("business")
    for version, status in ((2, Status.PENDING_REVIEW), (3, Status.DENIED)):
        await handling.decide(identity_id, status, version)
    assert await handling.status() == "denied"
    told = await handling.events()

    await handling.drive(command, change)

    assert await handling.status() == "denied"
    assert await held(handling) == [], "its EIN stays free"
    new = Counter(await handling.events()) - Counter(told)
    assert new == Counter(events)


async def test_an_identity_of_another_status_that_a_refused_change_leaves_is_told(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application())
    before = await handling.events()
    person_id = await handling.value("SELECT person_id FROM persons WHERE tenant = :tenant")
    known = handling.bank.identities[await handling.identity_of("person")]
    left = msgspec.structs.replace(known, identity_id="idn_other", status=Status.PENDING_REVIEW)
    handling.bank.answers["update"] += [Accepted(known), Accepted(left)]
    handling.bank.answers["update_customer"] += [Refused(Reason.PROVIDER_REFUSED, "no")]
    change = UpdatePerson.model_validate({"person_id": str(person_id), "last_name": "After"})
    update = await handling.accept(table.UPDATE_PERSON.name)
    await handling.order(update)

    with pytest.raises(ProviderRefused):
        await handling.drive(update, change)

    told = Counter(await handling.events()) - Counter(before)
    assert told == Counter({"person.updated": 1})
