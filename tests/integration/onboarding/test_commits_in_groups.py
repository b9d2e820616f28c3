"""Commits of several onboardings together: a customer that another transaction has locked delays only its own."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from libs.handling.group_commit import GroupCommit
from libs.persistence.leased_writes import LeasedValue
from services.onboarding.repository.onboarding_commits import DECIDE, Stored
from services.onboarding.repository.step_commits import Advance, Intent
from services.onboarding.repository.steps import SagaName
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import partner
from tests.integration.onboarding.shelf import add_approved, new_store, open_shelf
from tests.support.infrastructure import Environment
from tests.support.pace import pace

OPERATION = "onboarding.onboard_customer"
TENANT = "demo"


async def test_a_locked_customer_delays_only_its_own_onboarding(environment: Environment) -> None:
    store = new_store()
    async with open_shelf(environment) as database:
        async with database.transaction() as connection:
            files = [await add_approved(connection, store, TENANT) for _ in range(3)]
        names = [
            SagaName(
                saga_id=uuid4(),
                tenant=TENANT,
                customer_id=file.customer.customer_id,
                operation=OPERATION,
            )
            for file in files
        ]
        items = [
            LeasedValue(
                await driving.accept(database, OPERATION, partner(TENANT)),
                Advance(saga=name, intent=Intent("create_core_business", uuid4())),
            )
            for name in names
        ]
        group_commit = GroupCommit(database)

        async with database.transaction() as connection:
            await store.file(connection, TENANT, names[1].customer_id, lock=True)
            first, locked, last = (
                asyncio.create_task(group_commit.commit(DECIDE, item)) for item in items
            )
            neighbours = [await asyncio.wait_for(task, 10 * pace()) for task in (first, last)]
            was_waiting = not locked.done()
        decided: list[Stored] = [neighbours[0], await locked, neighbours[1]]

    assert was_waiting
    assert [one.customer.file.customer.customer_id for one in decided] == [
        name.customer_id for name in names
    ]
    assert all(one.begun is not None for one in decided)
