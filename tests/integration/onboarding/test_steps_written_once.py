"""Saga steps over a real database and a provider whose answers each test decides."""

from __future__ import annotations

import time
from uuid import UUID, uuid4, uuid5

import pytest
from sqlalchemy import text
from uuid_utils import uuid7

from libs.contracts.errors import OutcomePending
from libs.handling.parking import NeedsOperator
from libs.providers.outcomes import Absent, Accepted, NotSent, Reason, Unknown
from services.onboarding import saga as saga_module
from services.onboarding.repository import step_cases
from services.onboarding.saga import STEP_SECONDS, NothingSent, StepRefused
from tests.integration.onboarding.steps import ACCOUNT, NO, STEP, Steps
from tests.support.database_life import distrust_life, missing_records, trust_life
from tests.support.database_life import distrusted as in_doubt


async def test_a_first_refusal_is_final(steps: Steps) -> None:
    steps.write.answers += [NO]

    for _ in range(2):
        with pytest.raises(StepRefused) as refused:
            await steps.drive()

    assert (refused.value.reason, refused.value.words) == (Reason.PROVIDER_REFUSED, "refused")
    assert steps.write.calls == ["send"]


async def test_a_refusal_is_not_taken_for_final_while_an_earlier_send_may_arrive(
    steps: Steps,
) -> None:
    steps.write.answers += [Unknown("timed_out"), Absent(), NO, Absent(), Accepted(ACCOUNT)]

    for _ in range(2):
        with pytest.raises(OutcomePending):
            await steps.drive()
    opened = await steps.drive()

    assert opened == ACCOUNT
    assert steps.write.calls == ["send", "find", "send", "find", "find"]
    assert (await steps.row()).state == "done"


async def test_a_refusal_counts_once_no_earlier_send_can_arrive(steps: Steps) -> None:
    steps.write.answers += [Unknown("timed_out"), Absent(), NO, Absent()]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(71)

    with pytest.raises(StepRefused):
        await steps.drive()

    assert (await steps.row()).state == "refused"


async def test_an_attempt_that_sends_nothing_leaves_the_last_send_as_old_as_it_was(
    steps: Steps,
) -> None:
    steps.write.answers += [Unknown("timed_out"), Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    first = await steps.row()

    with pytest.raises(OutcomePending):
        await steps.drive()
    asked = await steps.row()
    steps.write.answers += [Absent(), Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    sent = await steps.row()

    assert steps.write.calls == ["send", "find", "find", "send"]
    assert asked.last_sent_at == first.last_sent_at
    assert asked.last_attempt_at > first.last_attempt_at
    assert sent.last_sent_at > first.last_sent_at
    assert sent.first_sent_at == first.first_sent_at


async def test_a_process_that_stood_still_after_its_commit_has_no_time_of_its_own_to_send(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = time.time()
    stood_still: list[float] = []

    def stand_still(point: str) -> None:
        if point.endswith(".intended"):
            time.sleep(0.5)
            stood_still.append(time.time())

    monkeypatch.setattr(saga_module, "crash_point", stand_still)

    await steps.drive()

    [deadline] = steps.write.deadlines
    assert len(stood_still) == 1
    assert before + STEP_SECONDS <= deadline < stood_still[0] + STEP_SECONDS - 0.4


async def test_a_first_step_that_was_certainly_not_sent_leaves_nothing(steps: Steps) -> None:
    steps.write.answers += [NotSent("not_connected")]

    with pytest.raises(NothingSent):
        await steps.drive_first()

    assert await steps.row() is None


async def test_a_step_whose_key_may_be_forgotten_is_asked_about_and_never_sent(
    steps: Steps,
) -> None:
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(24 * 3600.0)

    with pytest.raises(NeedsOperator):
        await steps.drive()

    assert steps.write.calls == ["send", "find"]
    async with steps.database.transaction() as connection:
        unknown = await step_cases.find_unknown(connection, steps.name.saga_id, STEP)
    assert unknown is not None
    assert unknown.command_id == steps.leased.command_id


async def test_while_the_database_may_have_gone_back_a_first_send_is_asked_about(
    distrusted: Steps,
) -> None:
    distrusted.write.answers += [Accepted(ACCOUNT)]

    opened = await distrusted.drive()

    assert opened == ACCOUNT
    assert distrusted.write.calls == ["find"], "it was sent before the database went back"


async def test_what_a_database_that_went_back_forgot_may_be_as_young_as_its_present_life(
    distrusted: Steps,
) -> None:
    distrusted.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await distrusted.drive()
    first = await distrusted.row()
    await distrusted.make_older(24 * 365 * 3600.0)

    distrusted.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await distrusted.drive()

    again = await distrusted.row()
    assert abs((again.last_sent_at - first.last_sent_at).total_seconds()) < 30


async def test_what_was_sent_before_the_key_memory_in_a_lost_history_is_only_asked_about(
    distrusted: Steps,
) -> None:
    """The command has an Idempotency-Key: it may have been accepted, and lost, before it was accepted now."""
    await distrust_life(distrusted.database, lost_seconds=300, began_seconds=24 * 3600)
    distrusted.write.answers += [Absent()]

    await distrusted.accept_as(uuid5(uuid4(), "key"))

    with pytest.raises(NeedsOperator):
        await distrusted.drive()

    assert distrusted.write.calls == ["find"]


async def test_a_command_that_was_made_since_has_nothing_in_a_lost_history(
    distrusted: Steps,
) -> None:
    await distrust_life(distrusted.database, lost_seconds=300, began_seconds=24 * 3600)
    distrusted.write.answers += [Absent(), Accepted(ACCOUNT)]

    await distrusted.accept_as(UUID(bytes=uuid7().bytes))

    assert await distrusted.drive() == ACCOUNT
    assert distrusted.write.calls == ["find", "send"]


async def test_what_a_lost_history_may_have_sent_stays_as_old_when_the_database_is_trusted_again(
    distrusted: Steps,
) -> None:
    await distrust_life(distrusted.database, lost_seconds=300, began_seconds=24 * 3600)
    await distrusted.accept_as(uuid5(uuid4(), "key"))
    distrusted.write.answers += [Absent(), Absent()]
    with pytest.raises(NeedsOperator):
        await distrusted.drive()
    await trust_life(distrusted.database)

    with pytest.raises(NeedsOperator):
        await distrusted.drive()

    assert distrusted.write.calls == ["find", "find"]


@pytest.mark.parametrize("recorded", ["first_sent_at", "'-infinity'"], ids=["now", "before"])
async def test_what_was_lost_where_no_life_was_trusted_before_may_be_of_any_age(
    distrusted: Steps, recorded: str
) -> None:
    """The release before recorded it as infinitely old."""
    async with distrusted.database.transaction() as connection:
        await connection.execute(text("DELETE FROM database_life WHERE checked_at IS NOT NULL"))
    await distrusted.accept_as(uuid5(uuid4(), "key"))
    distrusted.write.answers += [Unknown("timed_out"), Absent(), Absent()]
    with pytest.raises(OutcomePending):
        await distrusted.drive()
    assert (await distrusted.row()).first_sent_at.year == 1970
    async with distrusted.database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE saga_steps SET first_sent_at = {recorded} WHERE saga_id = :id"),
            {"id": distrusted.name.saga_id},
        )

    for _ in range(2):
        with pytest.raises(NeedsOperator):
            await distrusted.drive()

    assert distrusted.write.calls == ["find", "find", "find"]


@pytest.mark.parametrize("answers", [[], [Unknown("timed_out")]], ids=["at once", "later"])
async def test_a_step_that_is_found_and_of_which_no_send_is_known_opens_a_case(
    distrusted: Steps, answers: list[Unknown]
) -> None:
    distrusted.write.answers += answers
    for _ in answers:
        with pytest.raises(OutcomePending):
            await distrusted.drive()
    distrusted.write.answers += [Accepted(ACCOUNT)]

    await distrusted.drive()

    missing = await missing_records(distrusted.database)
    assert missing == [f"core: {distrusted.name.customer_id}"]
    assert "send" not in distrusted.write.calls


async def test_a_step_that_may_be_there_without_a_send_opens_no_case_where_it_is_found(
    distrusted: Steps,
) -> None:
    distrusted.write.finds_only_sends = False
    distrusted.write.answers += [Accepted(ACCOUNT)]

    await distrusted.drive()

    assert distrusted.write.calls == ["find"]
    assert await missing_records(distrusted.database) == []


async def test_a_step_of_which_a_send_is_known_opens_no_case_where_it_is_found(
    distrusted: Steps,
) -> None:
    distrusted.write.answers += [Absent(), Unknown("timed_out"), Accepted(ACCOUNT)]
    with pytest.raises(OutcomePending):
        await distrusted.drive()

    await distrusted.drive()

    assert distrusted.write.calls == ["find", "send", "find"]
    assert await missing_records(distrusted.database) == []


async def test_a_step_that_an_operator_found_absent_by_mistake_opens_no_case_where_it_is_found(
    steps: Steps,
) -> None:
    steps.write.answers += [Unknown("timed_out"), Accepted(ACCOUNT)]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(24 * 3600.0)
    await steps.end_lease()
    await steps.resolve("absent")
    await steps.lease_again()

    async with in_doubt(steps.database):
        await steps.drive()
        missing = await missing_records(steps.database)

    assert steps.write.calls == ["send", "find"]
    assert missing == []


async def test_what_an_operator_found_absent_is_sent_while_the_database_is_in_doubt(
    distrusted: Steps,
) -> None:
    await distrust_life(distrusted.database, lost_seconds=300, began_seconds=24 * 3600)
    await distrusted.accept_as(uuid5(uuid4(), "key"))
    distrusted.write.answers += [Absent(), Accepted(ACCOUNT)]
    with pytest.raises(NeedsOperator):
        await distrusted.drive()
    await distrusted.end_lease()
    await distrusted.resolve("absent")
    await distrusted.lease_again()

    assert await distrusted.drive() == ACCOUNT
    assert distrusted.write.calls == ["find", "send"]


async def test_an_old_command_without_a_key_is_sent_after_a_restart_that_lost_seconds(
    distrusted: Steps,
) -> None:
    await distrust_life(distrusted.database, lost_seconds=5, began_seconds=5)
    command_id = UUID(bytes=uuid7().bytes)
    await distrusted.accept_as(command_id)
    async with distrusted.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE inbox SET accepted_at = accepted_at - interval '3 days' WHERE command_id = :id"
            ),
            {"id": command_id},
        )
    distrusted.write.answers += [Absent(), Accepted(ACCOUNT)]

    assert await distrusted.drive() == ACCOUNT
