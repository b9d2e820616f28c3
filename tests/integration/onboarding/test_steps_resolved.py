"""A step whose outcome is unknown is resolved by an operator."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from libs.client.errors import OperatorError
from libs.contracts.errors import InvalidState, NotFound, OutcomePending
from libs.providers.outcomes import Unknown
from services.onboarding import operator
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository import step_cases
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.saga import StepRefused
from tests.integration.onboarding.steps import ACCOUNT, OPERATION, STEP, Steps
from tests.support.infrastructure import Environment


async def unknown(steps: Steps) -> None:
    """Bring the step to an unknown outcome that only an operator can end."""
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(24 * 3600.0)
    await steps.end_lease()


async def test_a_step_that_an_operator_found_absent_is_sent_as_if_for_the_first_time(
    steps: Steps,
) -> None:
    await unknown(steps)

    await steps.resolve("absent")
    await steps.lease_again()
    opened = await steps.drive()

    assert opened == ACCOUNT
    assert steps.write.calls == ["send", "send"]
    row = await steps.row()
    assert (row.state, row.resolution, row.resolved_by) == ("done", "absent", "ann")
    assert row.resolution_reason == "the bank said so"


async def test_a_step_that_an_operator_found_done_has_the_effects_of_one_that_was_answered(
    steps: Steps,
) -> None:
    await unknown(steps)

    await steps.resolve("done", {"account_id": "acc_7", "account_number": "7000000007"})
    await steps.lease_again()
    opened = await steps.drive()

    assert opened == OpenedAccount("acc_7", "7000000007")
    assert steps.recorded == ["acc_7"]
    assert steps.write.calls == ["send"]
    assert (await steps.row()).state == "done"


async def test_a_step_that_an_operator_found_refused_is_refused(steps: Steps) -> None:
    await unknown(steps)

    await steps.resolve("refused")
    await steps.lease_again()
    with pytest.raises(StepRefused) as refused:
        await steps.drive()

    assert refused.value.code == step_cases.RESOLVED_CODE
    assert steps.write.calls == ["send"]
    assert (await steps.row()).state == "refused"


async def test_a_step_is_not_resolved_while_its_command_is_driven(steps: Steps) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()

    with pytest.raises(InvalidState):
        await steps.resolve("absent")

    assert (await steps.row()).resolution is None


@pytest.mark.parametrize("result", [None, {"account_id": "acc_7"}, {"status": "open"}, []])
async def test_a_result_that_is_no_answer_to_the_step_is_not_taken(
    steps: Steps, result: Any
) -> None:
    await unknown(steps)

    with pytest.raises(InvalidState):
        await steps.resolve("done", result)

    assert (await steps.row()).resolution is None


async def test_a_step_whose_outcome_is_known_is_not_resolved(steps: Steps) -> None:
    await steps.drive()
    await steps.end_lease()

    with pytest.raises(NotFound):
        await steps.resolve("absent")


async def test_operators_list_and_resolve_steps_by_the_command_line(
    steps: Steps,
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await unknown(steps)
    url = environment.database_urls["onboarding"]
    monkeypatch.setenv("BANKSIDE_ONBOARDING_DATABASE_URL", url)

    async def listed() -> list[Any]:
        await asyncio.to_thread(operator.list_sagas, unknown=True, limit=1000, json=True)
        shown = json.loads(capsys.readouterr().out)
        assert (shown["unfinished"], shown["refused_compensations"]) == ([], [])
        saga_id = str(steps.name.saga_id)
        return [row["step"] for row in shown["unknown_steps"] if row["saga_id"] == saga_id]

    def resolve(saga_id: UUID, reason: str) -> int:
        return operator.resolve(saga_id, STEP, decision="refused", reason=reason, by="ann")

    before = await listed()
    with pytest.raises(OperatorError):
        await asyncio.to_thread(resolve, uuid4(), "no such saga")
    with pytest.raises(OperatorError):
        await asyncio.to_thread(resolve, steps.name.saga_id, " ")
    await asyncio.to_thread(resolve, steps.name.saga_id, "by telephone")
    hint = capsys.readouterr().out

    assert before == [STEP]
    assert f"bankside commands retry {steps.leased.command_id}" in hint
    assert await listed() == []
    row = await steps.row()
    assert (row.resolved_by, row.resolution_reason) == ("ann", "by telephone")


async def test_an_onboarding_whose_customer_is_pending_cannot_be_abandoned(steps: Steps) -> None:
    async with steps.database.transaction() as connection:
        free = await operator.why_not_abandoned(connection, OPERATION, steps.leased.command_id)
        await connection.execute(
            text(
                "UPDATE customers SET status = 'pending', saga_id = CAST(:saga AS uuid)"
                " WHERE customer_id = :customer"
            ),
            {
                "saga": str(saga_ids_of(steps.leased.command_id, steps.leased.message_id)[1]),
                "customer": steps.name.customer_id,
            },
        )
        objection = await operator.why_not_abandoned(connection, OPERATION, steps.leased.command_id)
        await connection.rollback()

    assert free is None
    assert objection is not None
    assert "pending" in objection
