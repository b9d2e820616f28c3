"""What onboarding has recorded of a request, as operators see it."""

from __future__ import annotations

import time
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import text

from libs.contracts.errors import OutcomePending
from libs.contracts.operating.requests import FindSteps, FoundSteps
from libs.handling.operating.request_steps import RequestSteps
from libs.providers.outcomes import Unknown
from services.onboarding.handlers.request_steps import find_own_steps
from services.onboarding.repository.sagas import saga_ids_of
from tests.integration.onboarding.steps import ANN, STEP, Steps
from tests.support.pace import pace


async def steps_of(steps: Steps, request_id: str) -> FoundSteps:
    found = RequestSteps("onboarding", steps.database, find_own_steps)
    result = await found.find(ANN, FindSteps(request_id=request_id), time.time() + 10 * pace())
    assert isinstance(result.data, FoundSteps)
    return result.data


@pytest.fixture
def named(steps: Steps) -> Steps:
    """With the saga id that the command gives it."""
    _, saga_id = saga_ids_of(steps.leased.command_id, steps.leased.message_id)
    steps.name = replace(steps.name, saga_id=saga_id)
    return steps


async def test_the_steps_of_a_saga_are_shown_with_the_customer_as_it_is(named: Steps) -> None:
    await named.drive()

    found = await steps_of(named, named.leased.request_id)

    command, step, customer = sorted(found.steps, key=lambda one: one.kind != "command")
    if step.kind == "customer":
        step, customer = customer, step
    assert command.what == "onboarding.onboard_customer"
    assert (step.kind, step.what, step.state) == ("provider_request", STEP, "done")
    assert step.until is not None
    assert step.until >= step.at
    row = await named.row()
    assert step.idempotency_key == str(row.idempotency_key)
    assert (customer.kind, customer.state) == ("customer", "approved")
    assert customer.customer_id == str(named.name.customer_id)
    assert found.resource_ids == [], "the customer was there before this request"


async def test_the_customer_that_a_request_made_is_followed_by_its_events(named: Steps) -> None:
    await named.drive()
    async with named.database.transaction() as connection:
        await connection.execute(
            text("UPDATE customers SET saga_id = :saga WHERE customer_id = :id"),
            {"saga": named.name.saga_id, "id": named.name.customer_id},
        )

    found = await steps_of(named, named.leased.request_id)

    assert found.resource_ids == [str(named.name.customer_id)]


async def test_a_step_of_unknown_outcome_and_its_refusal_are_told_apart(named: Steps) -> None:
    named.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await named.drive()

    unknown = await steps_of(named, named.leased.request_id)
    await named.make_older(24 * 3600.0)
    await named.end_lease()
    await named.resolve("refused")
    resolved = await steps_of(named, named.leased.request_id)

    (before,), (after,) = (
        [step for step in found.steps if step.kind == "provider_request"]
        for found in (unknown, resolved)
    )
    assert (before.state, before.until) == ("outcome unknown", None)
    assert after.error == "resolved_by_operator"
    assert after.actor == "ann"
    assert after.note == "An operator said that it is refused: the bank said so"


async def test_nothing_is_found_of_another_request(named: Steps) -> None:
    await named.drive()

    assert await steps_of(named, str(uuid4())) == FoundSteps(steps=[])
