"""What an operator decides on a step by mistake: the record of another customer, and what the provider did not do."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.exc import IntegrityError

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.errors import InvalidState, NotFound, OutcomePending, ProviderRefused
from libs.handling.parking import NeedsOperator
from libs.persistence import inbox
from libs.providers.outcomes import Absent, Reason, Refused, Unknown
from services.onboarding.ids import DECISION
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository import holders, step_cases
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.repository.steps import SagaName
from services.onboarding.resolving import resolve_step
from services.onboarding.saga import StepRefused
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, bank_account, business, partner
from tests.integration.onboarding.handling import A_MOMENT, ONBOARDING, Handling
from tests.integration.onboarding.shelf import add_approved, new_store
from tests.integration.onboarding.steps import ANN, OPERATION, STEP, Steps
from tests.integration.tables import finish, rows
from tests.support.waiting import eventually

RIGHT = OpenedAccount("acc_right", "7000000001")
WAITS_FOR_A_LOCK = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
    " (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def answered(account_id: str) -> dict[str, Any]:
    return {"account_id": account_id, "account_number": "7000000001"}


async def become_unknown(steps: Steps) -> None:
    """The outcome is one that only an operator can end."""
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(24 * 3600.0)
    await steps.end_lease()


async def of_another_customer(steps: Steps) -> Steps:
    """A step of a customer of another partner."""
    tenant = f"t{uuid4().hex[:8]}"
    async with steps.database.transaction() as connection:
        customer = (await add_approved(connection, new_store(), tenant)).customer
    name = SagaName(
        saga_id=uuid4(), tenant=tenant, customer_id=customer.customer_id, operation=OPERATION
    )
    return Steps(
        steps.database, name, await driving.accept(steps.database, OPERATION, partner(tenant))
    )


async def account_of(steps: Steps) -> str:
    [account] = await rows(
        steps.database,
        "SELECT account_id FROM accounts WHERE customer_id = :id",
        id=steps.name.customer_id,
    )
    return str(account.account_id)


async def leave_unknown(handling: Handling, method: str) -> inbox.Leased:
    """An onboarding whose step at this method of the bank needs an operator."""
    leased, command = await handling.accept(ONBOARDING), application(business=business())
    handling.bank.answers[method] += [Unknown("timed_out"), Absent()]
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)
    before, handling.bank.capabilities = handling.bank.capabilities, A_MOMENT
    handling.bank.answers[method] = [Absent()]
    with pytest.raises(NeedsOperator):
        await handling.drive(leased, command)
    handling.bank.capabilities = before
    await rest(handling, leased)
    return leased


async def lose_answer(handling: Handling, leased: inbox.Leased, body: Any) -> None:
    """Drive a command of the customer until its next write, which is carried out, and of which no answer comes."""
    await handling.order(leased)
    handling.bank.loses_next_answer = True
    with pytest.raises(OutcomePending):
        await handling.drive(leased, body)
    await rest(handling, leased)


async def rest(handling: Handling, leased: inbox.Leased) -> None:
    async with handling.database.transaction() as connection:
        await inbox.postpone(connection, leased, seconds=3600, error="outcome_pending")


async def resolve_step_of(
    handling: Handling, leased: inbox.Leased, step: str, result: dict[str, Any] | None
) -> None:
    """As done with this answer; None: as absent."""
    saga_id: UUID = await handling.value(
        "SELECT DISTINCT saga_id FROM saga_steps WHERE command_id = :id", id=leased.command_id
    )
    await resolve_step(
        handling.database,
        ANN,
        saga_id,
        step,
        "absent" if result is None else "done",
        reason="seen at the bank",
        transit_seconds=0.0,
        result=result,
    )


async def test_the_account_of_another_partners_customer_is_not_taken_for_the_answer(
    steps: Steps,
) -> None:
    other = await of_another_customer(steps)
    await become_unknown(steps)

    with pytest.raises(InvalidState) as refused:
        await steps.resolve("done", answered(await account_of(other)))

    assert str(other.name.customer_id) in refused.value.detail
    assert (await steps.row()).resolution is None


async def test_a_record_of_the_steps_own_customer_is_taken_for_the_answer(steps: Steps) -> None:
    await become_unknown(steps)

    await steps.resolve("done", answered(await account_of(steps)))

    assert (await steps.row()).resolution == "done"


async def test_the_record_of_an_opening_under_way_is_not_taken_for_the_answer_of_another(
    handling: Handling,
) -> None:
    opened = await leave_unknown(handling, "open_account")
    theirs = await handling.value(
        "SELECT result ->> 'core_id' FROM saga_steps"
        " WHERE name = 'create_core_business' AND command_id = :id",
        id=opened.command_id,
    )
    leased = await leave_unknown(handling, "create_business")

    with pytest.raises(InvalidState) as refused:
        await resolve_step_of(handling, leased, "create_core_business", {"core_id": theirs})

    assert "another customer" in refused.value.detail


async def test_a_record_that_could_not_be_taken_back_is_not_taken_for_the_answer_of_another(
    handling: Handling,
) -> None:
    no = Refused(Reason.PROVIDER_REFUSED, "refused")
    handling.bank.answers["open_account"] += [no]
    handling.bank.answers["close_customer"] += [no, no]
    with pytest.raises(ProviderRefused):
        await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    theirs = await handling.value(
        "SELECT result ->> 'core_id' FROM saga_steps"
        " WHERE name = 'create_core_business' AND tenant = :tenant"
    )
    leased = await leave_unknown(handling, "create_business")

    with pytest.raises(InvalidState) as refused:
        await resolve_step_of(handling, leased, "create_core_business", {"core_id": theirs})

    assert "another customer" in refused.value.detail


async def test_of_two_operators_who_name_one_record_for_two_customers_at_once_the_second_is_refused(
    steps: Steps,
) -> None:
    other = await of_another_customer(steps)
    await become_unknown(other)
    await become_unknown(steps)
    record_id = f"acc_{uuid4().hex}"

    async def waits() -> object:
        return await rows(steps.database, WAITS_FOR_A_LOCK) or None

    async with steps.database.transaction() as connection:
        name = other.name
        found = await step_cases.find_unknown(connection, name.saga_id, STEP)
        assert found is not None
        free = await holders.other_holder(connection, record_id, name.customer_id)
        await step_cases.resolve(
            connection,
            found,
            "done",
            answered(record_id),
            by="bob",
            reason="seen at the bank",
        )
        second = asyncio.create_task(steps.resolve("done", answered(record_id)))
        await eventually("the second operator waits", waits)
    with pytest.raises(InvalidState) as refused:
        await second

    assert "another customer" in refused.value.detail
    assert free is None
    assert (await steps.row()).resolution is None


@pytest.mark.parametrize("mistaken", ["absent", "done", "refused"])
async def test_a_decision_that_was_not_acted_on_is_replaced(
    steps: Steps, mistaken: Resolution
) -> None:
    await become_unknown(steps)
    await steps.resolve(mistaken, answered("acc_wrong") if mistaken == "done" else None)

    await steps.resolve("done", answered(RIGHT.account_id))
    await steps.lease_again()
    opened = await steps.drive()

    assert opened == RIGHT
    assert steps.write.calls == ["send"]
    row = await steps.row()
    assert (row.state, row.resolution, row.refusal_code) == ("done", "done", None)


async def test_an_opening_whose_record_was_found_after_all_is_carried_on_before_a_denial(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    identity_id = await handling.identity_of("business")
    decided = await handling.accept(DECISION)
    approved = {"identity_id": identity_id, "status": "approved", "version": 2}
    customer_id = str(await handling.customer_id())
    await lose_answer(handling, decided, {"customer_id": customer_id, "verification": approved})
    [core_id] = handling.bank.open_customer_ids

    await resolve_step_of(handling, decided, "create_core_business", None)
    await resolve_step_of(handling, decided, "create_core_business", {"core_id": core_id})
    objection = await handling.why_not_abandoned(decided)
    await handling.decide(identity_id, Status.DENIED, 3)

    assert "begun to open its customer" in str(objection)
    opened = await handling.value("SELECT core_id FROM customers WHERE tenant = :tenant")
    assert opened == core_id


async def test_an_update_that_was_found_after_all_is_carried_out_although_its_customer_was_denied(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    identity_id = await handling.identity_of("business")
    leased = await handling.accept(table.UPDATE_BUSINESS.name)
    command = UpdateBusiness.model_validate(
        {"customer_id": str(await handling.customer_id()), "business": {"dba": "New"}}
    )
    await lose_answer(handling, leased, command)
    await handling.decide(identity_id, Status.DENIED, 5)
    answer = {"identity_id": identity_id, "status": "denied", "version": 5}

    await resolve_step_of(handling, leased, "update_identity", None)
    await resolve_step_of(handling, leased, "update_identity", answer)
    await handling.drive(await driving.claim_again(handling.database, leased), command)

    assert (await handling.events()).count("customer.updated") == 1


async def test_a_step_that_was_found_absent_and_not_sent_since_is_refused_without_waiting(
    steps: Steps,
) -> None:
    await become_unknown(steps)
    await steps.resolve("absent")

    await steps.resolve("refused")
    await steps.lease_again()
    with pytest.raises(StepRefused):
        await steps.drive()

    assert steps.write.calls == ["send"]


async def test_a_decision_by_which_a_drive_fails_is_replaced(steps: Steps) -> None:
    await become_unknown(steps)
    await steps.resolve("done", answered("acc_wrong"))
    await steps.lease_again()
    steps.fails_to_record = True
    with pytest.raises(AssertionError):
        await steps.drive()
    steps.fails_to_record = False
    await steps.end_lease()

    await steps.resolve("done", answered(RIGHT.account_id))
    await steps.lease_again()

    assert await steps.drive() == RIGHT


async def test_a_decision_that_another_command_acts_on_is_not_replaced_meanwhile(
    steps: Steps,
) -> None:
    wrong, right = f"acc_{uuid4().hex}", f"acc_{uuid4().hex}"
    await become_unknown(steps)
    await steps.resolve("done", answered(wrong))
    await steps.accept_as(uuid4())

    async def replace() -> None:
        with pytest.raises(InvalidState) as refused:
            await steps.resolve("done", answered(right))
        assert "is being asked right now" in refused.value.detail

    steps.before_recording = replace
    opened = await steps.drive()

    assert opened.account_id == wrong
    assert (await steps.row()).result == answered(wrong)


async def test_a_drive_whose_lease_has_run_out_does_not_act_on_a_decision_that_was_replaced(
    steps: Steps,
) -> None:
    wrong, right = f"acc_{uuid4().hex}", f"acc_{uuid4().hex}"
    await become_unknown(steps)
    await steps.resolve("done", answered(wrong))
    await steps.lease_again()

    async def replace() -> None:
        await steps.lease_runs_out()
        await steps.resolve("done", answered(right))

    steps.before_recording = replace
    with pytest.raises(inbox.LeaseLost):
        await steps.drive()
    steps.before_recording = None
    await steps.lease_again()
    opened = await steps.drive()

    assert opened.account_id == right


async def test_a_record_named_by_mistake_is_given_back_also_when_the_command_is_over(
    steps: Steps,
) -> None:
    other = await of_another_customer(steps)
    await become_unknown(other)
    await become_unknown(steps)
    theirs, right = f"acc_{uuid4().hex}", f"acc_{uuid4().hex}"
    await other.resolve("done", answered(theirs))
    await other.lease_again()
    await finish(other.database, other.leased)

    await other.resolve("done", answered(right))
    await steps.resolve("done", answered(theirs))

    assert (await other.row()).result == answered(right)
    assert (await steps.row()).result == answered(theirs)


async def test_a_refusal_whose_command_is_over_stays(steps: Steps) -> None:
    await become_unknown(steps)
    await steps.resolve("refused")
    await steps.lease_again()
    await finish(steps.database, steps.leased)

    with pytest.raises(NotFound):
        await steps.resolve("done", answered(RIGHT.account_id))

    assert (await steps.row()).resolution == "refused"


async def test_a_decision_that_names_an_external_account_which_its_customer_has_already_is_replaced(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application())
    has = await handling.value(
        "SELECT external_account_id FROM external_accounts WHERE tenant = :tenant"
    )
    command = AddExternalBankAccount.model_validate(
        {"external_bank_account_id": has, "external_bank_account": bank_account()}
    )
    leased = await handling.accept(table.ADD_EXTERNAL_BANK_ACCOUNT.name)
    await handling.order(leased)
    handling.bank.answers["link_external_account"] += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)
    await rest(handling, leased)
    await resolve_step_of(handling, leased, "add_external_account", {"external_account_id": has})
    leased = await driving.claim_again(handling.database, leased)
    with pytest.raises(IntegrityError):
        await handling.drive(leased, command)
    await rest(handling, leased)
    added = f"ext_{uuid4().hex}"

    await resolve_step_of(handling, leased, "add_external_account", {"external_account_id": added})
    await handling.drive(await driving.claim_again(handling.database, leased), command)

    primary = await handling.value(
        "SELECT external_account_id FROM external_accounts WHERE tenant = :tenant AND is_primary"
    )
    assert primary == added
