"""A step whose outcome is unknown is resolved by an operator."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, NotFound, OutcomePending
from libs.contracts.exact_json import encode
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database
from libs.providers.outcomes import Unknown
from services.onboarding.abandoning import why_not_abandoned
from services.onboarding.handlers.operating import OperatingCustomers
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository import step_cases
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.saga import StepRefused
from tests.integration.onboarding.shelf import new_store
from tests.integration.onboarding.steps import (
    ACCOUNT,
    OPERATION,
    STEP,
    TRANSIT_SECONDS,
    Steps,
)
from tests.integration.tables import finish
from tests.support.answered_operators import NAME, AnsweredOperators
from tests.support.infrastructure import Environment

REFUSE = text(
    "UPDATE saga_steps SET compensation = true, state = 'refused', refusal_reason = 'provider_refused',"
    " refusal_code = 'no' WHERE saga_id = :id"
)


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

    assert refused.value.words == step_cases.RESOLVED_CODE
    assert steps.write.calls == ["send"]
    assert (await steps.row()).state == "refused"


@pytest.mark.parametrize("resolution", ["absent", "refused"])
async def test_a_step_whose_last_send_may_still_arrive_is_held(
    steps: Steps, resolution: Resolution
) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.end_lease(seconds=0)

    with pytest.raises(InvalidState) as refused:
        await steps.resolve(resolution)

    assert "may still arrive" in refused.value.detail
    assert (await steps.row()).resolution is None
    assert await steps.is_resting()
    await steps.make_older(TRANSIT_SECONDS + 1)
    await steps.resolve(resolution)
    assert (await steps.row()).resolution == resolution
    assert not await steps.is_resting()


async def test_a_step_is_done_although_its_last_send_may_still_arrive(steps: Steps) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.end_lease()

    await steps.resolve("done", {"account_id": "acc_7", "account_number": "7000000007"})

    assert (await steps.row()).resolution == "done"


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


def handlers(database: Database) -> dict[str, QueryHandler]:
    return {
        **operating_handlers("onboarding", database),
        **OperatingCustomers(database, new_store(), transit_seconds=TRANSIT_SECONDS).by_operation(),
    }


async def test_operators_list_and_resolve_steps_by_the_command_line(
    steps: Steps, environment: Environment
) -> None:
    await unknown(steps)
    operator = AnsweredOperators(environment, {"onboarding": handlers})
    saga_id, because = str(steps.name.saga_id), ("--reason", "by telephone")

    async def listed() -> list[str]:
        shown = await operator.command("sagas", "list", "--unknown", "--limit", "1000")
        assert (shown["unfinished"], shown["refused_compensations"]) == ([], [])
        return [row["step"] for row in shown["unknown_steps"] if row["saga_id"] == saga_id]

    every = await operator.command("sagas", "list", "--limit", "1000")
    before = await listed()
    wrong = [
        await operator.run("sagas", "resolve", *named, "--as", "refused", *reason, "--yes")
        for named, reason in (
            ((str(uuid4()), STEP), because),
            ((saga_id, STEP), ("--reason", " ")),
            ((saga_id, STEP), (*because, "--result", "{}")),
        )
    ]
    done = await operator.run(
        "sagas", "resolve", saga_id, STEP, "--as", "refused", *because, "--yes"
    )

    assert before == [STEP]
    [unfinished] = [
        command
        for command in every["unfinished"]
        if command["command_id"] == str(steps.leased.command_id)
    ]
    assert (unfinished["operation"], unfinished["last_error"]) == (OPERATION, "outcome_pending")
    assert [each.status for each in wrong] == [2, 2, 2]
    assert "whose outcome is not known" in wrong[0].err
    assert f"bankside commands retry {steps.leased.command_id} --reason TEXT" in done.out
    assert await listed() == []
    row = await steps.row()
    assert (row.resolved_by, row.resolution_reason) == (NAME, "by telephone")


async def test_a_decision_on_a_command_that_is_over_says_that_providers_may_have_its_change(
    steps: Steps, environment: Environment
) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await finish(steps.database, steps.leased)
    operator = AnsweredOperators(environment, {"onboarding": handlers})
    answer = encode({"account_id": f"acc_{uuid4().hex}", "account_number": "7000000001"}).decode()

    done = await operator.run(
        *("sagas", "resolve", str(steps.name.saga_id), STEP, "--as", "done"),
        *("--result", answer, "--reason", "by telephone", "--yes"),
    )

    told = " ".join(done.out.split())
    assert "is not open any more: the decision is only recorded." in told
    assert "an update to the value that Bankside has sends nothing" in told


async def test_operators_settle_a_refused_compensation_by_the_command_line(
    steps: Steps, environment: Environment
) -> None:
    await steps.drive()
    async with steps.database.transaction() as connection:
        await connection.execute(REFUSE, {"id": steps.name.saga_id})
    operator = AnsweredOperators(environment, {"onboarding": handlers})
    step = str(steps.name.saga_id), STEP

    async def listed() -> list[tuple[str, str]]:
        shown = await operator.command("sagas", "list", "--refused", "--limit", "1000")
        return [
            (row["saga_id"], row["refusal_code"])
            for row in shown["refused_compensations"]
            if row["saga_id"] == step[0] and row["refused_at"]
        ]

    before = await listed()
    settled = await operator.command("sagas", "settle", *step, "--reason", "Seen to.", "--yes")
    again = await operator.run("sagas", "settle", *step, "--reason", "Seen to.", "--yes")

    assert before == [(step[0], "no")]
    assert settled == {"saga_id": step[0], "step": STEP, "settled": True}
    assert await listed() == []
    assert (again.status, "to see to" in again.err) == (2, True)


async def test_an_onboarding_whose_customer_is_pending_cannot_be_abandoned(steps: Steps) -> None:
    async with steps.database.transaction() as connection:
        free = await why_not_abandoned(connection, OPERATION, steps.leased.command_id)
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
        objection = await why_not_abandoned(connection, OPERATION, steps.leased.command_id)
        await connection.rollback()

    assert free is None
    assert objection is not None
    assert "pending" in objection
    assert f"bankside commands retry {steps.leased.command_id} --reason TEXT" in objection
