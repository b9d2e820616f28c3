"""What operators read of customers and do about them, by the handlers of their operations."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts.errors import NotFound, OutcomePending
from libs.contracts.model import Model
from libs.contracts.operating import customers as contract
from libs.contracts.operating import saga_steps
from libs.contracts.operating.pages import Listed, Order
from libs.contracts.operating.search import FindId, FoundIds
from libs.handling.queries import QueryHandler
from libs.persistence import inbox, parking
from libs.persistence.engine import Database
from libs.providers.outcomes import Unknown
from services.onboarding.handlers.operating import OperatingCustomers
from services.onboarding.ids import derived
from services.onboarding.models import CustomerFile
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.store import Store
from tests.integration.onboarding.desk import business
from tests.integration.onboarding.shelf import add_approved, add_pending, new_store, open_shelf
from tests.integration.onboarding.steps import ANN, STEP, TRANSIT_SECONDS, Steps
from tests.support.infrastructure import Environment
from tests.support.pace import pace


@dataclass
class Hall:
    """Customers of a tenant of the test's own, and the operators' handlers."""

    database: Database
    store: Store
    tenant: str

    @property
    def handlers(self) -> OperatingCustomers:
        return OperatingCustomers(self.database, self.store, transit_seconds=TRANSIT_SECONDS)

    async def approved(self, name: str = "Acme Tools") -> CustomerFile:
        async with self.database.transaction() as connection:
            named = business(business_name=name)
            return await add_approved(connection, self.store, self.tenant, business=named)

    async def pending(self, name: str = "Acme Tools") -> CustomerFile:
        async with self.database.transaction() as connection:
            named = business(business_name=name)
            return await add_pending(connection, self.store, self.tenant, business=named)

    async def listed(self, **query: Any) -> list[str]:
        """The names of all pages."""
        found: list[str] = []
        after = None
        while True:
            command = contract.ListOperatorCustomers.model_validate(
                {"tenant": self.tenant, **query, "after": after}
            )
            data = await asked(self.handlers.list_customers, command)
            assert isinstance(data, Listed)
            assert len(data.items) <= command.limit
            found += [item.business_name for item in data.items]
            after = data.next
            if after is None:
                return found

    async def get(self, customer_id: UUID) -> contract.OperatorCustomer:
        command = contract.GetOperatorCustomer(customer_id=str(customer_id))
        data = await asked(self.handlers.get_customer, command)
        assert isinstance(data, contract.OperatorCustomer)
        return data

    async def reveal(self, file: CustomerFile, field: str, **of: str | None) -> str:
        values = {"customer_id": str(file.customer.customer_id), "field": field, "reason": "Asked."}
        command = contract.Reveal.model_validate(values | of)
        data = await asked(self.handlers.reveal, command)
        assert isinstance(data, contract.Revealed)
        return data.value

    async def found(self, wanted: str) -> list[str]:
        data = await asked(self.handlers.find_id, FindId(q=wanted))
        assert isinstance(data, FoundIds)
        return [item.kind.value for item in data.found if item.tenant in (self.tenant, None)]

    async def entries(self, action: str) -> list[dict[str, Any]]:
        async with self.database.transaction() as connection:
            rows = await connection.execute(text("SELECT entry FROM audit ORDER BY day, number"))
            read = [json.loads(row.entry) for row in rows]
        return [entry for entry in read if entry["action"] == action]


async def asked(handler: QueryHandler, command: Model) -> Any:
    return (await handler(ANN, command, time.time() + 10 * pace())).data


@pytest_asyncio.fixture
async def hall(environment: Environment) -> AsyncIterator[Hall]:
    async with open_shelf(environment) as database:
        yield Hall(database, new_store(), f"t_{uuid4().hex}")


async def test_pages_of_every_filter_have_each_customer_once_and_in_order(hall: Hall) -> None:
    names = [f"Business {number}" for number in range(7)]
    for number, name in enumerate(names):
        await (hall.approved(name) if number % 3 else hall.pending(name))

    newest = await hall.listed(limit=3)
    oldest = await hall.listed(limit=2, order=Order.OLDEST)
    pending = await hall.listed(limit=2, status="pending")
    by_name = await hall.listed(limit=2, name="bUSI")
    approved_by_name = await hall.listed(limit=2, name="Business", status="approved")

    assert newest == names[::-1]
    assert oldest == names
    assert pending == [names[6], names[3], names[0]]
    assert by_name == names
    assert approved_by_name == [names[1], names[2], names[4], names[5]]


async def test_names_are_found_by_their_beginning_in_any_case_and_nothing_else(hall: Hall) -> None:
    for name in ("Zürich Tools", "ZÜRICH Works", "Zulu", "100% Tools", "The Zürich Company"):
        await hall.pending(name)

    assert await hall.listed(name="zür", limit=1) == ["Zürich Tools", "ZÜRICH Works"]
    assert await hall.listed(name="Z") == ["Zulu", "Zürich Tools", "ZÜRICH Works"]
    assert await hall.listed(name="1%") == []
    assert await hall.listed(name="_") == []


async def test_a_customer_is_shown_without_anything_sensitive(hall: Hall) -> None:
    file = await hall.approved()
    secrets = [
        await hall.reveal(file, "ein"),
        await hall.reveal(file, "tin", person_id=str(file.persons[0].person_id)),
        await hall.reveal(file, "date_of_birth", person_id=str(file.persons[0].person_id)),
        await hall.reveal(file, "account_number", account_id=file.accounts[0].account_id),
        await hall.reveal(
            file,
            "external_account_number",
            external_bank_account_id=file.external_accounts[0].external_account_id,
        ),
    ]

    shown = await hall.get(file.customer.customer_id)

    assert shown.tenant == hall.tenant
    assert [person.customer_id for person in shown.persons] == [str(file.persons[0].person_id)]
    assert shown.accounts[0].account_number == "7890"
    assert shown.external_bank_accounts[0].account_number == secrets[-1][-4:]
    assert shown.business.ein == secrets[0][-4:]
    rendered = shown.model_dump_json()
    assert [secret for secret in secrets if secret in rendered] == []
    with pytest.raises(NotFound):
        await hall.get(uuid4())


async def test_a_value_that_is_shown_is_audited_with_its_reason_and_without_the_value(
    hall: Hall,
) -> None:
    file = await hall.approved()
    person_id = str(file.persons[0].person_id)

    tin = await hall.reveal(file, "tin", person_id=person_id)

    audited = [
        entry
        for entry in await hall.entries("customers.reveal")
        if entry["customer_id"] == str(file.customer.customer_id)
    ]
    assert len(audited) == 1
    assert audited[0]["actor"] == "operator:ann"
    assert (audited[0]["field"], audited[0]["person_id"]) == ("tin", person_id)
    assert audited[0]["reason"] == "Asked."
    assert tin not in json.dumps(audited)


async def test_a_part_of_another_customer_is_not_shown(hall: Hall) -> None:
    file, other = await hall.approved(), await hall.approved()

    for field, of in (
        ("tin", {"person_id": str(other.persons[0].person_id)}),
        ("account_number", {"account_id": other.accounts[0].account_id}),
    ):
        with pytest.raises(NotFound):
            await hall.reveal(file, field, **of)

    assert not any(
        entry["customer_id"] == str(file.customer.customer_id)
        for entry in await hall.entries("customers.reveal")
    )


async def test_the_search_finds_customers_by_the_ids_of_all_their_parts(hall: Hall) -> None:
    file = await hall.approved()
    customer, [person], [linked] = file.customer, file.persons, file.external_accounts
    assert customer.verification is not None

    kinds = [
        await hall.found(str(wanted))
        for wanted in (
            customer.customer_id,
            customer.core_id,
            customer.verification.identity_id,
            person.person_id,
            person.core_id,
            file.accounts[0].account_id,
            linked.external_account_id,
            linked.draft_id,
            uuid4(),
            "nothing",
        )
    ]

    assert kinds == [
        ["customer"],
        ["customer"],
        ["customer"],
        ["person"],
        ["person"],
        ["account"],
        ["external_account"],
        ["external_account"],
        [],
        [],
    ]


@pytest.fixture
def handlers(steps: Steps) -> OperatingCustomers:
    return OperatingCustomers(steps.database, new_store(), transit_seconds=TRANSIT_SECONDS)


async def test_the_search_finds_a_command_with_its_request(
    steps: Steps, handlers: OperatingCustomers
) -> None:
    command_id, request_id = str(steps.leased.command_id), steps.leased.request_id

    by_either = [
        (await asked(handlers.find_id, FindId(q=wanted))).found
        for wanted in (command_id, request_id)
    ]

    for [found] in by_either:
        assert (found.id, found.request_id) == (command_id, request_id)


async def become_unknown(steps: Steps) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(24 * 3600.0)
    await steps.end_lease()


async def steps_of(
    handlers: OperatingCustomers, kind: saga_steps.StepKind, saga_id: UUID
) -> list[saga_steps.SagaStep]:
    """Of all pages."""
    found: list[saga_steps.SagaStep] = []
    after = None
    while True:
        command = saga_steps.ListSagaSteps(kind=kind, order=Order.OLDEST, limit=1, after=after)
        data = await asked(handlers.list_steps, command)
        found += data.items
        after = data.next
        if after is None:
            return [step for step in found if step.saga_id == str(saga_id)]


async def stuck(handlers: OperatingCustomers) -> set[str]:
    command = contract.ListOperatorCustomers(stuck=True, limit=200)
    return {item.customer_id for item in (await asked(handlers.list_customers, command)).items}


async def test_a_step_of_unknown_outcome_is_listed_and_shown_with_its_customer_and_resolved(
    steps: Steps, handlers: OperatingCustomers
) -> None:
    customer_id, saga_id = str(steps.name.customer_id), steps.name.saga_id
    before = await stuck(handlers)
    await become_unknown(steps)

    [listed] = await steps_of(handlers, saga_steps.StepKind.UNKNOWN, saga_id)
    shown = await asked(
        handlers.get_customer, contract.GetOperatorCustomer(customer_id=customer_id)
    )
    during = await stuck(handlers)
    resolved = await asked(
        handlers.resolve_step,
        saga_steps.ResolveStep.model_validate(
            {
                "saga_id": str(saga_id),
                "step": STEP,
                "as": "done",
                "result": {"account_id": f"acc_{uuid4().hex}", "account_number": "7000000007"},
                "reason": "By telephone.",
            }
        ),
    )

    assert (listed.step, listed.outcome_unknown, listed.state) == (STEP, True, "intended")
    assert listed.command is not None
    assert listed.command.last_error == "outcome_pending"
    assert [step.model_dump() for step in shown.steps] == [listed.model_dump()]
    assert customer_id not in before
    assert customer_id in during
    assert resolved.is_open
    assert await steps_of(handlers, saga_steps.StepKind.UNKNOWN, saga_id) == []
    row = await steps.row()
    assert (row.resolution, row.resolved_by) == ("done", "ann")


async def test_a_refused_compensation_is_listed_until_it_is_settled(
    steps: Steps, handlers: OperatingCustomers
) -> None:
    saga_id = steps.name.saga_id
    await steps.drive()
    async with steps.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE saga_steps SET compensation = true, state = 'refused', refusal_reason = 'provider_refused',"
                " refusal_code = 'no' WHERE saga_id = :id"
            ),
            {"id": saga_id},
        )
    settle = saga_steps.SettleStep(saga_id=str(saga_id), step=STEP, reason="Seen to.")

    [refused] = await steps_of(handlers, saga_steps.StepKind.REFUSED, saga_id)
    during = await stuck(handlers)
    await asked(handlers.settle_step, settle)

    assert (refused.step, refused.compensation, refused.refusal_code) == (STEP, True, "no")
    assert str(steps.name.customer_id) in during
    assert await steps_of(handlers, saga_steps.StepKind.REFUSED, saga_id) == []
    with pytest.raises(NotFound):
        await asked(handlers.settle_step, settle)


async def test_the_customer_of_a_parked_onboarding_is_stuck(
    steps: Steps, handlers: OperatingCustomers
) -> None:
    """Its command has no ordering key: the customer's id is derived from the command."""
    command_id, message_id = steps.leased.command_id, steps.leased.message_id
    customer_id = derived(saga_ids_of(command_id, message_id)[1], "customer")
    async with steps.database.transaction() as connection:
        await connection.execute(
            text(
                "INSERT INTO customers (customer_id, tenant, saga_id, status, business, ein_last_four)"
                " SELECT :id, tenant, :saga, 'pending', business, ein_last_four FROM customers"
                " WHERE customer_id = :like"
            ),
            {"id": customer_id, "saga": uuid4(), "like": steps.name.customer_id},
        )
    before = await stuck(handlers)
    async with inbox.fenced(steps.database, steps.leased) as connection:
        await parking.park(connection, steps.leased, "Of the test.")

    assert str(customer_id) not in before
    assert str(customer_id) in await stuck(handlers)
