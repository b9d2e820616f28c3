"""Verdicts of the identity provider that decide nothing yet, or end the verification."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customer_views import OnboardingResult
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.errors import OutcomePending
from libs.contracts.model import Model
from libs.contracts.principal import Principal
from libs.contracts.reconciliation import HeldCustomer
from libs.contracts.result import Result
from libs.handling.commands import CommandHandler, NeedsOperator
from libs.handling.group_commit import GroupCommit
from libs.persistence import inbox, parking
from libs.persistence.engine import Database
from libs.providers.outcomes import Absent, NotSent, Reason, Refused, Unknown
from libs.providers.writing import Capabilities
from services.onboarding.abandoning import why_not_abandoned
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers import apply_decision
from services.onboarding.handlers.feeds import prepare_identity
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import IdentityEntry, IdentityReport
from services.onboarding.ordering import ordering_key
from services.onboarding.repository.onboarding_commits import DECIDE
from services.onboarding.repository.reconciliation import HeldCustomers
from services.onboarding.repository.store import Store
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, bank_account, business, partner, person
from tests.integration.onboarding.shelf import new_store, open_shelf
from tests.support.fake_providers import FakeProviders
from tests.support.infrastructure import Environment

ONBOARDING = table.ONBOARD_CUSTOMER.name
A_MOMENT = Capabilities(keys_remembered_seconds=1.0, longest_transit_seconds=1.0)
"""Shorter than a send may take: nothing is sent twice."""


@dataclass
class Handling:
    """The handlers with a bank whose answers the test decides, on a tenant of their own."""

    database: Database
    store: Store
    bank: FakeProviders
    handlers: Mapping[str, CommandHandler]
    principal: Principal

    async def accept(self, operation: str) -> inbox.Leased:
        return await driving.accept(self.database, operation, self.principal)

    async def drive(self, leased: inbox.Leased, command: Any) -> Result:
        return await driving.drive(self.database, self.handlers, leased, self.principal, command)

    async def order(self, leased: inbox.Leased) -> None:
        """As where the command is recorded: those of one customer are driven one at a time."""
        key = ordering_key(self.principal.tenant, await self.customer_id())
        async with self.database.transaction() as connection:
            ordered = text("UPDATE inbox SET ordering_key = :key WHERE command_id = :id")
            await connection.execute(ordered, {"key": key, "id": leased.command_id})

    async def why_not_abandoned(self, leased: inbox.Leased) -> str | None:
        async with self.database.transaction() as connection:
            return await why_not_abandoned(connection, leased.operation, leased.command_id)

    async def held(self) -> HeldCustomer:
        """The customer as reconciliation is told of it."""
        customers = HeldCustomers(self.store.vault)
        async with self.database.snapshot() as connection:
            [held] = await customers.by_ids(connection, [await self.customer_id()])
        return held

    async def decide(self, identity_id: str, status: Status, version: int = 2) -> None:
        verification = {"identity_id": identity_id, "status": status.value, "version": version}
        body = {"customer_id": str(await self.customer_id()), "verification": verification}
        await self.drive(await self.accept(apply_decision.OPERATION), body)

    async def something_changed(self) -> None:
        """The feed tells of a change, and not of which."""
        body = {"customer_id": str(await self.customer_id()), "verification": None}
        await self.drive(await self.accept(apply_decision.OPERATION), body)

    async def value(self, statement: str, **values: Any) -> Any:
        """The only value of a statement's answer."""
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text(statement), {"tenant": self.principal.tenant, **values}
            )
            return rows.scalar_one()

    async def customer_id(self) -> UUID:
        found: UUID = await self.value("SELECT customer_id FROM customers WHERE tenant = :tenant")
        return found

    async def status(self) -> str:
        return str(await self.value("SELECT status FROM customers WHERE tenant = :tenant"))

    async def identity_of(self, kind: str) -> str:
        column = {
            "business": "SELECT identity_id FROM customers WHERE tenant = :tenant",
            "person": "SELECT identity_id FROM persons WHERE tenant = :tenant",
        }
        return str(await self.value(column[kind]))

    async def events(self) -> list[str]:
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT type FROM outbox WHERE customer_id = :id ORDER BY type"),
                {"id": str(await self.customer_id())},
            )
            return list(rows.scalars())


@pytest_asyncio.fixture
async def handling(environment: Environment) -> AsyncIterator[Handling]:
    store, bank = new_store(), FakeProviders()
    async with open_shelf(environment) as database:
        handlers = command_handlers(Parts(bank, bank, store, Events(store)))
        yield Handling(database, store, bank, handlers, partner(f"t{uuid4().hex[:8]}"))


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
    before = await handling.status()

    await handling.something_changed()
    unchanged = await handling.events()
    handling.bank.says_now(await handling.identity_of("business"), Status.APPROVED)
    await handling.something_changed()
    handling.bank.says_now(await handling.identity_of("person"), Status.APPROVED)
    await handling.something_changed()

    assert (before, await handling.status()) == ("awaiting_documents", "approved")
    assert "person.updated" not in unchanged
    assert (await handling.events()).count("person.updated") == 1
    assert handling.bank.calls["open_account"] == ["send"]


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

    assert await handling.status() == "approved"


@pytest.mark.parametrize("verdict", [Status.DENIED, Status.AWAITING_DOCUMENTS])
async def test_an_opening_that_a_decision_has_begun_goes_on_though_another_verdict_comes(
    handling: Handling, verdict: Status
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING_REVIEW]
    await handling.drive(await handling.accept(ONBOARDING), application())
    identity_id = await handling.identity_of("business")
    handling.bank.says_now(identity_id, Status.APPROVED)
    handling.bank.answers["open_account"] += [Unknown("timed_out")]
    decision = await handling.accept(apply_decision.OPERATION)
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
    assert await handling.status() == "approved"
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
    assert await handling.events() == ["customer.created", "customer.denied", "person.created"]
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
    await handling.drive(await handling.accept(table.ADD_EXTERNAL_BANK_ACCOUNT.name), added)

    again = await handling.drive(leased, command)

    assert isinstance(again.data, OnboardingResult)
    assert again.data.external_bank_account == first.data.external_bank_account


async def told_by_the_feed(handling: Handling, identity_id: str, status: Status) -> inbox.Leased:
    """The command that an entry of the identity provider's feed becomes, claimed as the service does."""
    report = IdentityReport(
        business_id=str(await handling.customer_id()),
        identity_id=identity_id,
        status=status.value,
        version=2,
    )
    entry = IdentityEntry(position=uuid4().int % 2**40, type="decided", report=report)
    record = await prepare_identity([entry])
    async with handling.database.transaction() as connection:
        await record(connection)
    return await claimed(handling)


async def claimed(handling: Handling) -> inbox.Leased:
    """The decision of the tenant that is due, and waits for no earlier command."""
    async with handling.database.driver() as connection:
        due = await inbox.claim(connection, 100)
    tenant = f'"tenant":"{handling.principal.tenant}"'.encode()
    [found] = [
        one for one in due if one.operation == apply_decision.OPERATION and tenant in one.principal
    ]
    return found


async def test_an_update_that_waits_for_the_verdict_does_not_hold_it_up(handling: Handling) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    onboarding, application_ = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(onboarding, application_)
    customer_id = str(await handling.customer_id())
    change = UpdateBusiness.model_validate(
        {"customer_id": customer_id, "business": {"dba": "Acme"}}
    )
    update = await handling.accept(table.UPDATE_BUSINESS.name)
    await handling.order(update)
    with pytest.raises(OutcomePending):
        await handling.drive(update, change)

    identity_id = await handling.identity_of("business")
    decision = await told_by_the_feed(handling, identity_id, Status.APPROVED)
    await handling.drive(decision, json.loads(decision.body))
    await handling.drive(onboarding, application_)
    await handling.drive(update, change)

    assert await handling.status() == "approved"


async def test_a_decision_that_finds_its_customer_no_longer_pending_takes_its_turn(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.PENDING]
    onboarding, application_ = await handling.accept(ONBOARDING), application()
    with pytest.raises(OutcomePending):
        await handling.drive(onboarding, application_)
    identity_id = await handling.identity_of("business")
    unordered = await told_by_the_feed(handling, identity_id, Status.APPROVED)
    await handling.decide(identity_id, Status.APPROVED)
    await handling.drive(onboarding, application_)

    await handling.drive(unordered, json.loads(unordered.body))
    ordered = await claimed(handling)
    await handling.drive(ordered, json.loads(ordered.body))

    assert json.loads(unordered.body)["is_ordered"] is False
    assert json.loads(ordered.body)["is_ordered"] is True
    key = ordering_key(handling.principal.tenant, await handling.customer_id())
    by_id = "SELECT ordering_key FROM inbox WHERE command_id = :id"
    assert await handling.value(by_id, id=unordered.command_id) is None
    assert await handling.value(by_id, id=ordered.command_id) == key
    assert await handling.status() == "approved"


async def test_an_account_is_not_opened_while_a_change_waits_for_an_operator(
    handling: Handling,
) -> None:
    handling.bank.verdicts["business"] += [Status.AWAITING_DOCUMENTS]
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    change = UpdateBusiness.model_validate(
        {"customer_id": str(await handling.customer_id()), "business": {"dba": "Acme"}}
    )
    update = await handling.accept(table.UPDATE_BUSINESS.name)
    await handling.order(update)
    handling.bank.capabilities = A_MOMENT
    handling.bank.answers["update"] += [Unknown("timed_out"), Absent()]
    with pytest.raises(OutcomePending):
        await handling.drive(update, change)
    with pytest.raises(NeedsOperator):
        await handling.drive(update, change)
    async with handling.database.transaction() as connection:
        await parking.park(connection, update, "Of the test.")

    with pytest.raises(NeedsOperator):
        await handling.decide(await handling.identity_of("business"), Status.APPROVED)

    assert handling.bank.calls["create_business"] == []
    assert await handling.status() == "awaiting_documents"


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

    await handling.drive(await handling.accept(apply_decision.OPERATION), body)
    told = await handling.events()
    again = {**body, "verification": {**verification, "version": 3}}
    await handling.drive(await handling.accept(apply_decision.OPERATION), again)

    assert before.count("customer.documents_required") == 1
    assert told.count("customer.documents_required") == 2
    assert await handling.events() == told, "the same is not told again"


@pytest.mark.parametrize("status", ["pending", "approved"])
async def test_an_update_that_is_older_than_its_person_gets_its_place(
    handling: Handling, status: str
) -> None:
    person_id = uuid4()
    early = await handling.accept(table.UPDATE_PERSON.name)
    onboarding = await handling.accept(ONBOARDING)
    applied = application(persons=[person(id=str(person_id))])
    if status == "pending":
        handling.bank.verdicts["business"] += [Status.PENDING]
        with pytest.raises(OutcomePending):
            await handling.drive(onboarding, applied)
    else:
        await handling.drive(onboarding, applied)
    change = UpdatePerson.model_validate({"person_id": str(person_id), "last_name": "Early"})

    with pytest.raises(OutcomePending):
        await handling.drive(early, change)

    by_id = "SELECT ordering_key FROM inbox WHERE command_id = :id"
    key = ordering_key(handling.principal.tenant, await handling.customer_id())
    assert await handling.status() == status
    assert await handling.value(by_id, id=early.command_id) == key
    assert handling.bank.calls["update"] == []
