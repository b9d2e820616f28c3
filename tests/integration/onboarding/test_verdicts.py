"""Verdicts of the identity provider that decide nothing yet, or end the verification."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customer_views import OnboardingResult
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.errors import OutcomePending
from libs.contracts.model import Model
from libs.handling.awaiting import OutcomeAwaited
from libs.handling.group_commit import GroupCommit
from libs.handling.parking import NeedsOperator
from libs.persistence import inbox
from libs.providers.outcomes import Absent, Accepted, Reason, Refused, Unknown
from services.onboarding.handlers import apply_decision
from services.onboarding.ids import DECISION
from services.onboarding.models import ProviderIssue, Verification
from services.onboarding.repository.onboarding_commits import DECIDE
from tests.integration.onboarding.desk import application, bank_account, business
from tests.integration.onboarding.handling import A_MOMENT, ONBOARDING, Handling


@pytest.mark.parametrize("kind", ["business", "person"])
async def test_an_application_waits_for_a_verdict_that_is_pending(
    handling: Handling, kind: str
) -> None:
    handling.bank.verdicts[kind] += [Status.PENDING]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)
    before = await handling.status()

    await handling.decide(await handling.identity_of(kind), Status.APPROVED)
    result = await handling.drive(leased, command)

    assert before == "pending"
    assert isinstance(result.data, Model)
    assert result.data.model_dump()["status"] == Status.APPROVED
    assert handling.bank.calls["open_account"] == ["send"]


async def test_a_change_that_the_feed_only_mentions_is_asked_about(handling: Handling) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    handling.bank.verdicts["person"] += [Status.AWAITING_DOCUMENTS]
    await handling.drive(await handling.accept(ONBOARDING), application())
    before, told = await handling.status(), await handling.events()

    await handling.something_changed()
    unchanged = await handling.events()
    handling.bank.says_now(await handling.identity_of("business"), Status.APPROVED)
    await handling.something_changed()
    handling.bank.says_now(await handling.identity_of("person"), Status.APPROVED)
    await handling.something_changed()

    assert (before, await handling.status()) == ("awaiting_documents", "approved")
    assert unchanged == told
    assert (await handling.events()).count("person.updated") == told.count("person.updated") + 1
    assert handling.bank.calls["open_account"] == ["send"]


@pytest.mark.parametrize(
    ("verdict", "event"),
    [
        (Status.AWAITING_DOCUMENTS, "customer.documents_required"),
        (Status.DENIED, "customer.denied"),
    ],
)
@pytest.mark.parametrize("is_seen", [True, False], ids=["review seen", "review missed"])
async def test_a_verdict_on_an_approved_customer_is_followed_also_when_its_review_was_missed(
    handling: Handling, is_seen: bool, verdict: Status, event: str
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application())
    business_id = await handling.identity_of("business")
    if is_seen:
        handling.bank.says_now(business_id, Status.PENDING_REVIEW)
        await handling.something_changed()

    handling.bank.says_now(business_id, verdict)
    await handling.something_changed()

    assert await handling.status() == verdict
    told = Counter(await handling.events())
    assert (told["customer.pending_review"], told[event]) == (1, 1)


@pytest.mark.parametrize("of", ["business", "person"])
async def test_an_older_verdict_that_comes_late_changes_nothing(
    handling: Handling, of: str
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of(of)
    await handling.decide(identity_id, Status.AWAITING_DOCUMENTS, version=5)
    told = await handling.events()

    await handling.decide(identity_id, Status.APPROVED, version=4)

    assert await handling.status() == Status.AWAITING_DOCUMENTS
    assert await handling.events() == told


async def test_a_denial_that_is_stored_and_was_not_followed_is_followed_at_the_next_entry(
    handling: Handling,
) -> None:
    """As the release before leaves an approved customer."""
    await handling.drive(await handling.accept(ONBOARDING), application())
    handling.bank.says_now(await handling.identity_of("business"), Status.DENIED)
    await handling.something_changed()
    async with handling.database.transaction() as connection:
        left = text("UPDATE customers SET status = 'approved' WHERE customer_id = :id")
        await connection.execute(left, {"id": await handling.customer_id()})

    await handling.something_changed()

    assert await handling.status() == "denied"


@pytest.mark.parametrize("of", ["business", "person"])
async def test_documents_wanted_in_the_answer_of_an_update_are_told_though_the_feed_is_behind(
    handling: Handling, of: str
) -> None:
    """The feed's entries are known by then, and become no decisions."""
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    wanted = Verification(await handling.identity_of(of), Status.AWAITING_DOCUMENTS, 3)
    handling.bank.answers["update"] += [Accepted(wanted)]
    if of == "business":
        update = await handling.accept(table.UPDATE_BUSINESS.name)
        customer, phone = str(await handling.customer_id()), {"phone": "+12125550188"}
        change: Model = UpdateBusiness.model_validate({"customer_id": customer, "business": phone})
    else:
        update = await handling.accept(table.UPDATE_PERSON.name)
        person = await handling.value(
            "SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1"
        )
        share = {"person_id": str(person), "ownership_percentage": 10}
        change = UpdatePerson.model_validate(share)

    await handling.order(update)
    await handling.drive(update, change)

    assert await handling.status() == "awaiting_documents"
    told = Counter(await handling.events())
    assert (told["customer.pending_review"], told["customer.documents_required"]) == (1, 1)


async def test_a_change_is_not_asked_about_while_its_customer_is_being_onboarded(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    with pytest.raises(OutcomePending):
        await handling.drive(await handling.accept(ONBOARDING), application())
    handling.bank.says_now(await handling.identity_of("business"), Status.DENIED)

    with pytest.raises(OutcomePending):
        await handling.something_changed()

    assert await handling.status() == "pending"


@pytest.mark.parametrize("kind", ["business", "person"])
async def test_an_approval_applied_while_the_onboarding_decides_opens_the_account(
    handling: Handling, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handling.bank.verdicts[kind] += [Status.PENDING]
    commit = GroupCommit.commit

    async def commit_then_approve(group_commit: GroupCommit, write: Any, item: Any) -> Any:
        answer = await commit(group_commit, write, item)
        if write is DECIDE:
            await handling.decide(await handling.identity_of(kind), Status.APPROVED)
        return answer

    monkeypatch.setattr(GroupCommit, "commit", commit_then_approve)
    result = await handling.drive(await handling.accept(ONBOARDING), application())

    assert isinstance(result.data, Model)
    assert result.data.model_dump()["status"] == Status.APPROVED
    assert handling.bank.calls["open_account"] == ["send"]
    assert (await handling.events()).count("customer.approved") == 1


@pytest.mark.parametrize("kind", ["business", "person"])
async def test_an_application_that_waits_for_a_verdict_can_be_compared_with_the_providers(
    handling: Handling, kind: str
) -> None:
    handling.bank.verdicts[kind] += [Status.PENDING]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)

    waiting = await handling.held()
    await handling.decide(await handling.identity_of(kind), Status.APPROVED)
    going_on = await handling.held()

    assert not waiting.command_open
    assert {party.identity_status for party in waiting.parties} == {"pending", "approved"}
    assert going_on.command_open


async def test_an_application_whose_verification_has_not_been_answered_cannot_be_compared(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    handling.bank.answers["verify_person"] += [Unknown("timed_out")]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)

    held = await handling.held()

    assert held.command_open


async def test_a_decision_that_is_waited_for_has_the_onboarding_driven_at_once(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)
    async with handling.database.transaction() as connection:
        await inbox.postpone(connection, leased, seconds=3600, error="outcome_pending")

    await handling.decide(await handling.identity_of("business"), Status.DENIED)

    due = "SELECT due_at <= clock_timestamp() FROM inbox WHERE command_id = :id AND :tenant <> ''"
    assert await handling.value(due, id=leased.command_id)
    assert await handling.status() == "pending", "the onboarding itself moves its customer"


async def test_an_onboarding_that_ends_its_drive_as_the_decision_is_taken_over_does_not_rest(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    with pytest.raises(OutcomeAwaited) as ended:
        await handling.drive(await handling.accept(ONBOARDING), application())

    async def is_awaited() -> bool:
        async with handling.database.transaction() as connection:
            return await ended.value.is_awaited(connection)

    before = await is_awaited()
    await handling.decide(await handling.identity_of("business"), Status.APPROVED)

    assert (before, await is_awaited()) == (True, False)


async def test_a_decision_that_the_service_dies_with_has_its_onboarding_driven_at_once(
    handling: Handling, monkeypatch: pytest.MonkeyPatch
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomeAwaited):
        await handling.drive(leased, command)
    async with handling.database.transaction() as connection:
        await inbox.postpone(connection, leased, seconds=3600, error="outcome_pending")

    def die(point: str) -> None:
        if point == "onboarding.decision.committed":
            raise ConnectionResetError

    monkeypatch.setattr(apply_decision, "crash_point", die)
    with pytest.raises(ConnectionResetError):
        await handling.decide(await handling.identity_of("business"), Status.DENIED)

    due = "SELECT due_at <= clock_timestamp() FROM inbox WHERE command_id = :id AND :tenant <> ''"
    assert await handling.value(due, id=leased.command_id)


async def test_a_decision_does_not_come_between_the_steps_of_an_opening(
    handling: Handling,
) -> None:
    handling.bank.answers["open_account"] += [Unknown("timed_out")]
    leased, command = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(leased, command)

    with pytest.raises(OutcomePending):
        await handling.decide(await handling.identity_of("business"), Status.DENIED)
    await handling.drive(leased, command)
    opened = await handling.status()
    await handling.decide(await handling.identity_of("business"), Status.DENIED)

    assert (opened, await handling.status()) == ("approved", "denied")


@pytest.mark.parametrize("verdict", [Status.DENIED, Status.AWAITING_DOCUMENTS])
async def test_an_opening_that_a_decision_has_begun_ends_before_another_verdict_is_followed(
    handling: Handling, verdict: Status
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of("business")
    handling.bank.says_now(identity_id, Status.APPROVED)
    handling.bank.answers["open_account"] += [Unknown("timed_out")]
    decision = await handling.accept(DECISION)
    await handling.order(decision)
    body = {"customer_id": str(await handling.customer_id()), "verification": None}
    with pytest.raises(OutcomePending):
        await handling.drive(decision, body)
    objection = await handling.why_not_abandoned(decision)

    handling.bank.says_now(identity_id, verdict)
    await handling.drive(decision, body)

    assert objection is not None
    assert "half-way" in objection
    assert f"bankside commands retry {decision.command_id} --reason TEXT" in objection
    assert await handling.why_not_abandoned(decision) is None
    assert await handling.status() == verdict
    told = Counter(await handling.events())
    assert (told["customer.approved"], told["customer.pending_review"]) == (1, 2)
    assert handling.bank.calls["open_account"][:2] == ["send", "find"]


async def test_a_decision_ends_the_opening_of_one_that_waits_for_an_operator(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of("business")
    handling.bank.capabilities = A_MOMENT
    handling.bank.answers["open_account"] += [Unknown("timed_out"), Absent(), Absent()]
    with pytest.raises(OutcomePending):
        await handling.decide(identity_id, Status.APPROVED)

    with pytest.raises(NeedsOperator):
        await handling.decide(identity_id, Status.DENIED, version=3)

    assert await handling.status() == "pending_review"
    assert await handling.value("SELECT count(*) FROM ein_holds WHERE tenant = :tenant") == 1


async def test_a_denial_of_an_opening_is_carried_to_its_end_though_another_verdict_comes(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of("business")
    handling.bank.answers["open_account"] += [Refused(Reason.PROVIDER_REFUSED, "no")]
    handling.bank.answers["close_customer"] += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await handling.decide(identity_id, Status.APPROVED)

    await handling.decide(identity_id, Status.CANCELED, version=3)

    assert await handling.status() == "denied"
    unfinished = "SELECT count(*) FROM saga_steps WHERE tenant = :tenant AND recorded_at IS NULL"
    assert await handling.value(unfinished) == 0


@pytest.mark.parametrize("kind", ["business", "person"])
async def test_a_first_verdict_of_canceled_denies_and_frees_the_ein(
    handling: Handling, kind: str
) -> None:
    handling.bank.verdicts[kind] += [Status.CANCELED]
    leased, command = await handling.accept(ONBOARDING), application()

    result = await handling.drive(leased, command)

    assert isinstance(result.data, Model)
    assert result.data.model_dump()["status"] == Status.DENIED
    assert await handling.events() == [
        *("customer.created", "customer.denied", "person.created", "person.updated")
    ]
    assert await handling.value("SELECT count(*) FROM ein_holds WHERE tenant = :tenant") == 0
    assert handling.bank.calls["create_business"] == []


@pytest.mark.parametrize(
    ("first", "ends", "event"),
    [
        (Status.PENDING_REVIEW, "denied", "customer.denied"),
        (Status.AWAITING_DOCUMENTS, "canceled", "customer.updated"),
    ],
)
async def test_a_later_verdict_of_canceled_ends_the_application(
    handling: Handling, first: Status, ends: str, event: str
) -> None:
    handling.bank.verdicts["business"] += [first]
    await handling.drive(await handling.accept(ONBOARDING), application())

    await handling.decide(await handling.identity_of("business"), Status.CANCELED)

    assert await handling.status() == ends
    assert event in await handling.events()
    assert await handling.value("SELECT count(*) FROM ein_holds WHERE tenant = :tenant") == 0


async def test_a_later_verdict_of_pending_leaves_the_customer_where_it_is(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of("business")

    await handling.decide(identity_id, Status.PENDING)
    between = await handling.status()
    await handling.decide(identity_id, Status.APPROVED, version=3)

    assert between == "pending_review"
    assert await handling.status() == "approved"


async def test_an_onboarding_that_ends_late_names_its_own_external_account(
    handling: Handling,
) -> None:
    leased, command = await handling.accept(ONBOARDING), application()
    first = await handling.drive(leased, command)
    assert isinstance(first.data, OnboardingResult)
    known = first.data.external_bank_account.external_bank_account_id
    added = AddExternalBankAccount.model_validate(
        {"external_bank_account_id": known, "external_bank_account": bank_account()}
    )
    adding = await handling.accept(table.ADD_EXTERNAL_BANK_ACCOUNT.name)
    await handling.order(adding)
    await handling.drive(adding, added)

    again = await handling.drive(leased, command)

    assert isinstance(again.data, OnboardingResult)
    assert again.data.external_bank_account == first.data.external_bank_account


async def test_what_is_wanted_now_is_told_though_the_state_stays(handling: Handling) -> None:
    handling.bank.verdicts["business"] += [Status.AWAITING_DOCUMENTS]
    await handling.drive(await handling.accept(ONBOARDING), application())
    before = await handling.events()
    identity_id = await handling.identity_of("business")
    verification = {
        "identity_id": identity_id,
        "status": Status.AWAITING_DOCUMENTS.value,
        "version": 2,
        "issues": [{"code": "tax_identifier", "detail": "It is not the IRS's."}],
    }
    body = {"customer_id": str(await handling.customer_id()), "verification": verification}

    await handling.drive(await handling.accept(DECISION), body)
    told = await handling.events()
    again = {**body, "verification": {**verification, "version": 3}}
    await handling.drive(await handling.accept(DECISION), again)

    assert before.count("customer.documents_required") == 1
    assert told.count("customer.documents_required") == 2
    assert await handling.events() == told, "the same is not told again"


async def test_what_the_answer_of_a_persons_update_wants_is_told_though_the_state_stays(
    handling: Handling,
) -> None:
    handling.bank.verdicts["person"] += [Status.AWAITING_DOCUMENTS]
    await handling.drive(await handling.accept(ONBOARDING), application())
    issues = (ProviderIssue("address", "It is not on the document."),)
    wanted = Verification(
        await handling.identity_of("person"), Status.AWAITING_DOCUMENTS, 3, issues
    )
    handling.bank.answers["update"] += [Accepted(wanted)]
    update = await handling.accept(table.UPDATE_PERSON.name)
    await handling.order(update)
    person = await handling.value("SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1")

    await handling.drive(
        update, UpdatePerson.model_validate({"person_id": str(person), "ownership_percentage": 10})
    )

    assert (await handling.events()).count("customer.documents_required") == 2
