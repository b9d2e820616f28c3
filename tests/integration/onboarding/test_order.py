"""In which order the commands and decisions about one customer are carried out."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.customers import UpdateBusiness, UpdatePerson
from libs.contracts.errors import OutcomePending
from libs.handling.parking import NeedsOperator
from libs.persistence import inbox, parking
from libs.providers.outcomes import Absent, Unknown
from services.onboarding.handlers.feeds import prepare_identity
from services.onboarding.ids import DECISION
from services.onboarding.models import IdentityEntry, IdentityReport
from services.onboarding.ordering import ordering_key
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, business, person
from tests.integration.onboarding.handling import A_MOMENT, ONBOARDING, Handling


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
    due = await driving.claim(handling.database)
    tenant = f'"tenant":"{handling.principal.tenant}"'.encode()
    [found] = [one for one in due if one.operation == DECISION and tenant in one.principal]
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
