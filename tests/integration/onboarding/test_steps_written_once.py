"""Saga steps over a real database and a provider whose answers each test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
import pytest_asyncio
from sqlalchemy import text
from uuid_utils import uuid7

from libs.client.errors import OperatorError
from libs.contracts.errors import OutcomePending
from libs.contracts.result import Result
from libs.handling.commands import Drive, NeedsOperator
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.providers.outcomes import Absent, Accepted, NotSent, Reason, Refused, Unknown
from libs.providers.writing import Capabilities
from services.onboarding import operator
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository import step_cases
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.repository.step_commits import ADVANCE, Advance
from services.onboarding.repository.steps import Begun, SagaName
from services.onboarding.resolving import CannotResolve, resolve_step
from services.onboarding.saga import NothingSent, Saga, StepRefused
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import partner
from tests.integration.onboarding.scripted import ScriptedWrite
from tests.integration.onboarding.shelf import add_approved, new_store, open_shelf
from tests.support.database_life import distrust_life, trust_life
from tests.support.infrastructure import Environment

OPERATION = "onboarding.onboard_customer"
STEP = "open_account"
ACCOUNT = OpenedAccount("acc_1", "7000000001")
NO = Refused(Reason.PROVIDER_REFUSED, "refused")
OF_A_DAY = Capabilities(keys_remembered_seconds=24 * 3600.0, longest_transit_seconds=60.0)


@dataclass
class Steps:
    """One saga of one step, driven again and again."""

    database: Database
    name: SagaName
    leased: inbox.Leased
    write: ScriptedWrite[OpenedAccount] = field(
        default_factory=lambda: ScriptedWrite(ACCOUNT, capabilities=OF_A_DAY)
    )
    recorded: list[str] = field(default_factory=list)
    """Accounts whose opening was recorded."""

    async def accept_as(self, command_id: UUID) -> None:
        self.leased = await driving.accept(
            self.database, OPERATION, partner(), command_id=command_id
        )

    async def drive(self) -> OpenedAccount:
        async def run(saga: Saga) -> OpenedAccount:
            async def record(advance: Advance, account: OpenedAccount) -> Begun | None:
                self.recorded.append(account.account_id)
                return await saga.drive.commit(ADVANCE, advance)

            return await saga.step(STEP, OpenedAccount, self.write, record=record)

        return await self._drive(run)

    async def drive_first(self) -> OpenedAccount:
        return await self._drive(lambda saga: saga.first_step(STEP, OpenedAccount, self.write))

    async def _drive(self, run: Callable[[Saga], Awaitable[OpenedAccount]]) -> OpenedAccount:
        got: list[OpenedAccount] = []

        async def handle(drive: Drive, _: Any) -> Result:
            got.append(await run(Saga(drive, self.name)))
            return Result()

        handlers = {OPERATION: handle}
        await driving.drive(self.database, handlers, self.leased, partner(), None)
        return got[0]

    async def row(self) -> Any:
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT * FROM saga_steps WHERE saga_id = :id"), {"id": self.name.saga_id}
            )
            return rows.one_or_none()

    async def make_older(self, seconds: float) -> None:
        """As if everything about the step had happened so much earlier."""
        async with self.database.transaction() as connection:
            await connection.execute(
                text(
                    "UPDATE saga_steps SET first_sent_at = first_sent_at - make_interval(secs => :s),"
                    " last_sent_at = last_sent_at - make_interval(secs => :s) WHERE saga_id = :id"
                ),
                {"id": self.name.saga_id, "s": seconds},
            )

    async def end_lease(self) -> None:
        async with self.database.transaction() as connection:
            await inbox.postpone(connection, self.leased, seconds=3600, error="outcome_pending")

    async def lease_again(self) -> None:
        async with self.database.driver() as connection:
            claimed = await inbox.claim(connection, 100)
        self.leased = next(one for one in claimed if one.command_id == self.leased.command_id)

    async def resolve(self, resolution: Resolution, result: Any = None) -> None:
        await resolve_step(
            self.database,
            self.name.saga_id,
            STEP,
            resolution,
            by="ann",
            reason="the bank said so",
            result=result,
        )


@pytest_asyncio.fixture
async def distrusted(environment: Environment) -> AsyncIterator[Steps]:
    """On a database whose present life was not checked."""
    async with open_shelf(environment) as database:
        await distrust_life(database, lost_seconds=300, began_seconds=60)
        async with database.transaction() as connection:
            customer = (await add_approved(connection, new_store(), "demo")).customer
        leased = await driving.accept(database, OPERATION, partner())
        name = SagaName(
            saga_id=uuid4(), tenant="demo", customer_id=customer.customer_id, operation=OPERATION
        )
        yield Steps(database, name, leased)
        await trust_life(database)


@pytest_asyncio.fixture
async def steps(distrusted: Steps) -> Steps:
    await trust_life(distrusted.database)
    return distrusted


async def test_a_first_refusal_is_final(steps: Steps) -> None:
    steps.write.answers += [NO]

    for _ in range(2):
        with pytest.raises(StepRefused) as refused:
            await steps.drive()

    assert (refused.value.reason, refused.value.code) == (Reason.PROVIDER_REFUSED, "refused")
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
        unknown_steps = await step_cases.unknown(connection, 1000)
    (listed,) = [step for step in unknown_steps if step.saga_id == steps.name.saga_id]
    assert (listed.step, listed.command_id) == (STEP, steps.leased.command_id)


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

    with pytest.raises(CannotResolve):
        await steps.resolve("absent")

    assert (await steps.row()).resolution is None


@pytest.mark.parametrize("result", [None, {"account_id": "acc_7"}, {"status": "open"}, []])
async def test_a_result_that_is_no_answer_to_the_step_is_not_taken(
    steps: Steps, result: Any
) -> None:
    await unknown(steps)

    with pytest.raises(CannotResolve):
        await steps.resolve("done", result)

    assert (await steps.row()).resolution is None


async def test_a_step_whose_outcome_is_known_is_not_resolved(steps: Steps) -> None:
    await steps.drive()
    await steps.end_lease()

    with pytest.raises(CannotResolve):
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
