"""Saga steps are kept for a while, and for as long as somebody needs them."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from libs.providers.outcomes import Reason
from services.onboarding.housekeeping import keep_house
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import holders, step_cases, step_retention, steps
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.repository.step_commits import Advance, Intent, StepDone, advance
from services.onboarding.repository.steps import SagaName
from services.onboarding.repository.store import Store
from tests.integration.onboarding.desk import eventually, partner
from tests.integration.onboarding.driving import accept
from tests.integration.onboarding.shelf import add_approved, add_pending, new_store, open_shelf
from tests.integration.tables import finish
from tests.support.infrastructure import Environment

DAYS = 30
STEP = "open_account"
RESOLVED_STEPS = importlib.import_module(
    "services.onboarding.migrations.versions.0015_resolved_steps"
)


@pytest_asyncio.fixture
async def shelf(fresh_environment: Environment) -> AsyncIterator[Database]:
    async with open_shelf(fresh_environment) as database:
        yield database


@pytest.fixture
def store() -> Store:
    return new_store()


async def new_saga(shelf: Database, store: Store, *, pending: bool = False) -> SagaName:
    async with shelf.transaction() as connection:
        add = add_pending if pending else add_approved
        customer = (await add(connection, store, "demo")).customer
    return SagaName(
        saga_id=uuid4(), tenant="demo", customer_id=customer.customer_id, operation="onboarding.x"
    )


async def add_step(
    shelf: Database, saga: SagaName, name: str, *, days: int, refused: bool = False
) -> None:
    """A step whose outcome was recorded so many days ago."""
    leased = await accept(shelf, saga.operation, partner())
    intent = Intent(name, uuid4(), compensation=name.startswith("close"))
    async with shelf.driver_transaction() as driver:
        await advance(driver, [LeasedValue(leased, Advance(saga=saga, intent=intent))])
        if not refused:
            done = StepDone(name, {})
            await advance(driver, [LeasedValue(leased, Advance(saga=saga, done=done))])
    async with inbox.fenced(shelf, leased) as connection:
        if refused:
            await steps.set_refused(connection, saga, name, Reason.PROVIDER_REFUSED, "refused")
        await connection.execute(
            text(
                "UPDATE saga_steps SET recorded_at = clock_timestamp() - make_interval(days => :days)"
                " WHERE saga_id = :id AND name = :name"
            ),
            {"id": saga.saga_id, "name": name, "days": days},
        )


async def resolve_long_ago(shelf: Database, saga: SagaName, resolution: Resolution) -> inbox.Leased:
    """Its open command has a step of unknown outcome, which an operator resolved longer ago than steps are kept."""
    key = ordering_key(saga.tenant, saga.customer_id)
    leased = await accept(shelf, saga.operation, partner(), key)
    intent = Intent(STEP, uuid4())
    async with shelf.driver_transaction() as driver:
        await advance(driver, [LeasedValue(leased, Advance(saga=saga, intent=intent))])
    async with shelf.transaction() as connection:
        unknown = await step_cases.find_unknown(connection, saga.saga_id, STEP)
        assert unknown is not None
        result = {"account_id": "acc_1"} if resolution == "done" else None
        await step_cases.resolve(
            connection, unknown, resolution, result, by="ann", reason="seen at the bank"
        )
    await make_older(shelf, saga)
    return leased


async def make_older(shelf: Database, saga: SagaName) -> None:
    """Past the time for which steps are kept."""
    async with shelf.transaction() as connection:
        older = text(
            "UPDATE saga_steps SET recorded_at = recorded_at - make_interval(days => :days),"
            " resolved_at = resolved_at - make_interval(days => :days) WHERE saga_id = :id"
        )
        await connection.execute(older, {"id": saga.saga_id, "days": DAYS + 1})


async def purge(shelf: Database) -> int:
    async with shelf.transaction() as connection:
        return (await step_retention.purge(connection, days=DAYS)).deleted


async def names_left(shelf: Database, saga_id: UUID) -> list[str]:
    async with shelf.transaction() as connection:
        rows = await connection.execute(
            text("SELECT name FROM saga_steps WHERE saga_id = :id ORDER BY name"), {"id": saga_id}
        )
        return list(rows.scalars())


async def test_old_steps_go_and_younger_ones_stay(shelf: Database, store: Store) -> None:
    saga = await new_saga(shelf, store)
    await add_step(shelf, saga, "old", days=DAYS + 1)
    await add_step(shelf, saga, "old_refused", days=DAYS + 1, refused=True)
    await add_step(shelf, saga, "young", days=DAYS - 1)

    assert await purge(shelf) == 2

    assert await names_left(shelf, saga.saga_id) == ["young"]


async def set_status(shelf: Database, saga: SagaName, status: str) -> None:
    async with shelf.transaction() as connection:
        change = "UPDATE customers SET status = :status WHERE customer_id = :id"
        await connection.execute(text(change), {"status": status, "id": saga.customer_id})


@pytest.mark.parametrize("status", ["pending", "pending_review", "awaiting_documents"])
async def test_steps_of_a_customer_that_may_still_be_opened_stay(
    shelf: Database, store: Store, status: str
) -> None:
    saga = await new_saga(shelf, store, pending=True)
    await set_status(shelf, saga, status)
    await add_step(shelf, saga, "old", days=DAYS + 1)

    kept = await purge(shelf)
    await set_status(shelf, saga, "denied")

    assert (kept, await purge(shelf)) == (0, 1)


async def test_steps_stay_while_a_command_of_the_customer_is_open(
    shelf: Database, store: Store
) -> None:
    saga = await new_saga(shelf, store)
    await add_step(shelf, saga, "old", days=DAYS + 1)
    key = ordering_key(saga.tenant, saga.customer_id)
    leased = await accept(shelf, "onboarding.update_business", partner(), key)

    while_open = await purge(shelf)
    await finish(shelf, leased, b"{}")

    assert (while_open, await purge(shelf)) == (0, 1)


@pytest.mark.parametrize("resolution", ["absent", "done", "refused"])
async def test_a_resolved_step_on_which_its_command_did_not_act_stays_until_the_command_is_over(
    shelf: Database, store: Store, resolution: Resolution
) -> None:
    saga = await new_saga(shelf, store)
    leased = await resolve_long_ago(shelf, saga, resolution)

    while_open = await purge(shelf)
    await finish(shelf, leased)

    assert (while_open, await purge(shelf)) == (0, 1)


async def test_a_resolved_step_of_an_opening_stays(shelf: Database, store: Store) -> None:
    saga = await new_saga(shelf, store, pending=True)
    leased = await resolve_long_ago(shelf, saga, "done")

    await finish(shelf, leased)

    assert await purge(shelf) == 0


async def test_a_step_that_was_found_absent_and_sent_again_stays_as_long_as_its_outcome_is_unknown(
    shelf: Database, store: Store
) -> None:
    saga = await new_saga(shelf, store)
    leased = await resolve_long_ago(shelf, saga, "absent")
    async with inbox.fenced(shelf, leased) as connection:
        await steps.take_up(connection, saga, STEP, command_id=leased.command_id)
    await finish(shelf, leased)

    purged = await purge(shelf)

    assert purged == 0
    assert await names_left(shelf, saga.saga_id) == [STEP]


async def test_a_step_that_was_found_absent_and_certainly_not_sent_again_goes_in_its_time(
    shelf: Database, store: Store
) -> None:
    saga = await new_saga(shelf, store)
    leased = await resolve_long_ago(shelf, saga, "absent")
    async with inbox.fenced(shelf, leased) as connection:
        await steps.take_up(connection, saga, STEP, command_id=leased.command_id)
        await steps.withdraw(connection, saga, STEP)
    await finish(shelf, leased)

    young = await purge(shelf)
    await make_older(shelf, saga)

    assert (young, await purge(shelf)) == (0, 1)


@pytest.mark.parametrize("resolution", ["absent", "done", "refused"])
async def test_steps_that_an_earlier_release_resolved_go_in_their_time(
    fresh_environment: Environment, shelf: Database, store: Store, resolution: Resolution
) -> None:
    resolved, sent_again = await new_saga(shelf, store), await new_saga(shelf, store)
    await finish(shelf, await resolve_long_ago(shelf, resolved, resolution))
    leased = await resolve_long_ago(shelf, sent_again, "absent")
    async with inbox.fenced(shelf, leased) as connection:
        await steps.take_up(connection, sent_again, STEP, command_id=leased.command_id)
    await finish(shelf, leased)
    async with shelf.transaction() as connection:
        await connection.execute(text("UPDATE saga_steps SET recorded_at = NULL"))
    before = await purge(shelf)

    owner = await asyncpg.connect(fresh_environment.database_urls["onboarding_owner"])
    try:
        await owner.execute(RESOLVED_STEPS.STATEMENT)
    finally:
        await owner.close()

    assert (before, await purge(shelf)) == (0, 1)
    assert await names_left(shelf, sent_again.saga_id) == [STEP]


async def test_a_refused_compensation_stays_until_an_operator_has_seen_to_it(
    shelf: Database, store: Store
) -> None:
    saga = await new_saga(shelf, store)
    await add_step(shelf, saga, "close_core_business", days=DAYS + 1, refused=True)

    before = await purge(shelf)
    async with shelf.transaction() as connection:
        settled = await step_cases.settle(connection, saga.saga_id, "close_core_business")
        again = await step_cases.settle(connection, saga.saga_id, "close_core_business")

    assert (before, settled, again) == (0, True, False)
    assert await purge(shelf) == 1


async def test_the_steps_of_a_refused_compensation_stay_with_it_so_that_its_records_are_known(
    shelf: Database, store: Store
) -> None:
    saga, another = await new_saga(shelf, store), uuid4()
    await add_step(shelf, saga, "create_core_business", days=DAYS + 1)
    await add_step(shelf, saga, "close_core_business", days=DAYS + 1, refused=True)
    async with shelf.transaction() as connection:
        await connection.execute(
            text(
                """UPDATE saga_steps SET result = '{"core_id": "cus_theirs"}' WHERE state = 'done'"""
            )
        )

    purged = await purge(shelf)
    async with shelf.transaction() as connection:
        holder = await holders.other_holder(connection, "cus_theirs", another)
        await step_cases.settle(connection, saga.saga_id, "close_core_business")

    assert (purged, holder) == (0, str(saga.customer_id))
    assert await purge(shelf) == 2


async def test_one_batch_is_bounded(
    shelf: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_retention, "PURGE_BATCH", 2)
    saga = await new_saga(shelf, store)
    for number in range(5):
        await add_step(shelf, saga, f"old.{number}", days=DAYS + 1)

    assert await purge(shelf) == 2


async def test_a_batch_looks_at_no_more_steps_than_it_may_delete_and_the_next_goes_on_behind_them(
    shelf: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_retention, "PURGE_BATCH", 2)
    kept, saga = await new_saga(shelf, store, pending=True), await new_saga(shelf, store)
    for number in range(3):
        await add_step(shelf, kept, f"kept.{number}", days=DAYS + 9 - number)
    await add_step(shelf, saga, "old", days=DAYS + 1)
    await add_step(shelf, saga, "young", days=DAYS - 1)

    batches, last = [], step_retention.FIRST
    while True:
        async with shelf.transaction() as connection:
            purged = await step_retention.purge(connection, days=DAYS, after=last)
        if purged.last is None:
            break
        last = purged.last
        batches.append((purged.deleted, last.name))

    assert batches == [(0, "kept.1"), (1, "old")]
    assert await names_left(shelf, kept.saga_id) == ["kept.0", "kept.1", "kept.2"]
    assert await names_left(shelf, saga.saga_id) == ["young"]


async def keep_house_until_none_is_left(shelf: Database, saga: SagaName) -> None:
    async def none_left() -> bool:
        return await names_left(shelf, saga.saga_id) == []

    keeping = asyncio.create_task(keep_house(shelf, step_days=DAYS))
    try:
        await eventually(none_left)
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


async def test_housekeeping_purges_steps_behind_those_that_stay(
    shelf: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_retention, "PURGE_BATCH", 1)
    kept, saga = await new_saga(shelf, store, pending=True), await new_saga(shelf, store)
    for number in range(2):
        await add_step(shelf, kept, f"kept.{number}", days=DAYS + 9)
        await add_step(shelf, saga, f"old.{number}", days=DAYS + 1)

    await keep_house_until_none_is_left(shelf, saga)

    assert await names_left(shelf, kept.saga_id) == ["kept.0", "kept.1"]


async def test_housekeeping_purges_batch_after_batch(
    shelf: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_retention, "PURGE_BATCH", 2)
    saga = await new_saga(shelf, store)
    for number in range(5):
        await add_step(shelf, saga, f"old.{number}", days=DAYS + 1)

    await keep_house_until_none_is_left(shelf, saga)
