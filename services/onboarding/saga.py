"""Writes at providers, each in three commits' worth of safety: the send's beginning, the write, its outcome.

A saga is run from its start as often as it takes. A step that is done gives its stored answer, one that was refused its
stored refusal. Any other step is attempted by the rule of `libs.providers.writing`, under the same key each time.

Crash points of every step: `onboarding.<step>.intended`, `.called`, `.recorded` (a step's number, as in
`verify_person.2`, is left off).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

import msgspec
import structlog
from prometheus_client import Counter
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.errors import OutcomePending
from libs.handling.commands import Drive, NeedsOperator
from libs.providers.outcomes import Accepted, NotSent, Outcome, Reason, Refused, Unknown
from libs.providers.writing import Attempt, ProviderWrite, write_once
from libs.runtime.crash import crash_point
from services.onboarding.ids import derived
from services.onboarding.repository import steps
from services.onboarding.repository.steps import Begun, Done, SagaName, StepRefusal
from services.onboarding.step_answers import ANSWERS, without_number

STEP_SECONDS = 10.0
"""The longest one attempt at a step may take, the question about an earlier attempt included."""

STEPS = Counter("bankside_onboarding_steps", "Attempts at saga steps", ("step", "outcome"))
COMPENSATIONS_REFUSED = Counter(
    "bankside_onboarding_compensations_refused",
    "Compensations that a provider refused: an operator has to see to them",
    ("step",),
)

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)
Then = Callable[[AsyncConnection, AnswerT], Awaitable[None]]
"""What else to write in the transaction that records the answer."""

_log = structlog.get_logger("saga")


class StepRefused(Exception):
    """The provider's definite no to a step. `code` is the provider's own, for operators."""

    def __init__(self, step: str, reason: Reason, code: str) -> None:
        super().__init__(f"{step}: {reason} ({code})")
        self.reason = reason
        self.code = code


class NothingSent(Exception):
    """The first step of a saga certainly did not reach its provider, and its intent is withdrawn."""


class Saga:
    """The steps of one accepted command, whichever command drives them."""

    def __init__(self, drive: Drive, name: SagaName) -> None:
        self.drive = drive
        self.name = name

    async def first_step(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        *,
        then: Then[AnswerT] | None = None,
    ) -> AnswerT:
        """As `step`, for the one before which no provider knows of the saga.

        Raises:
            NothingSent: it certainly did not reach the provider.
            StepRefused, OutcomePending, NeedsOperator: as `step`.
        """
        return await self._step(step, answer, write, then, compensation=False)

    async def step(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        *,
        then: Then[AnswerT] | None = None,
    ) -> AnswerT:
        """The provider's answer, of now or of an earlier run.

        Raises:
            StepRefused: the provider's definite no, of now or of an earlier run.
            OutcomePending: not known, or not reached: run the saga again.
            NeedsOperator: not known, and neither sending it again nor asking can tell.
        """
        try:
            return await self._step(step, answer, write, then, compensation=False)
        except NothingSent as error:
            raise OutcomePending from error

    async def compensate(
        self, step: str, answer: type[AnswerT], write: ProviderWrite[AnswerT]
    ) -> None:
        """Take something back. A refusal is kept, counted and logged, and does not stop what else is to be taken back.

        Raises:
            OutcomePending, NeedsOperator: as `step`.
        """
        try:
            await self._step(step, answer, write, None, compensation=True)
        except NothingSent as error:
            raise OutcomePending from error
        except StepRefused as refused:
            COMPENSATIONS_REFUSED.labels(without_number(step)).inc()
            _log.error(
                "compensation_refused",
                saga=str(self.name.saga_id),
                customer=str(self.name.customer_id),
                step=step,
                code=refused.code,
            )

    async def _step(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        then: Then[AnswerT] | None,
        *,
        compensation: bool,
    ) -> AnswerT:
        assert ANSWERS[without_number(step)] is answer
        key = derived(self.name.saga_id, step)
        async with self.drive.transaction() as connection:
            known = await steps.begin(
                connection,
                self.name,
                step,
                key,
                compensation=compensation,
                command_id=self.drive.command_id,
            )
        last_sent_at: datetime | None = None
        outcome: Outcome[AnswerT]
        match known:
            case Done(result, is_recorded):
                outcome = Accepted(msgspec.convert(result, answer))
                if is_recorded:
                    return outcome.answer
            case StepRefusal(reason, code, is_recorded):
                outcome = Refused(reason, code)
                if is_recorded:
                    raise StepRefused(step, reason, code)
            case Begun(earlier, last_sent_at):
                crash_point(f"onboarding.{without_number(step)}.intended")
                deadline = time.time() + STEP_SECONDS
                outcome = await write_once(write, Attempt(key, deadline, STEP_SECONDS, earlier))
        return await self._conclude(step, outcome, then, last_sent_at)

    async def _conclude(
        self,
        step: str,
        outcome: Outcome[AnswerT],
        then: Then[AnswerT] | None,
        last_sent_at: datetime | None,
    ) -> AnswerT:
        """Commit what came of an attempt; the answer, or raise."""
        point = without_number(step)
        match outcome:
            case Accepted(answer):
                crash_point(f"onboarding.{point}.called")
                async with self.drive.transaction() as connection:
                    await steps.set_done(connection, self.name, step, msgspec.to_builtins(answer))
                    if then is not None:
                        await then(connection, answer)
                STEPS.labels(point, "done").inc()
                crash_point(f"onboarding.{point}.recorded")
                return answer
            case Refused(reason, code):
                crash_point(f"onboarding.{point}.called")
                async with self.drive.transaction() as connection:
                    await steps.set_refused(connection, self.name, step, reason, code)
                STEPS.labels(point, "refused").inc()
                _log.warning(
                    "step_refused",
                    saga=str(self.name.saga_id),
                    step=step,
                    reason=reason.value,
                    code=code,
                )
                crash_point(f"onboarding.{point}.recorded")
                raise StepRefused(step, reason, code)
            case NotSent():
                STEPS.labels(point, "not_sent").inc()
                async with self.drive.transaction() as connection:
                    await steps.withdraw(connection, self.name, step)
                raise NothingSent(step)
            case Unknown():
                STEPS.labels(point, "unknown").inc()
                if not outcome.sent:
                    async with self.drive.transaction() as connection:
                        await steps.not_sent_again(connection, self.name, step, last_sent_at)
                if outcome.needs_operator:
                    _log.error("write_needs_an_operator", saga=str(self.name.saga_id), step=step)
                    raise NeedsOperator(
                        f"Whether the step {step} of saga {self.name.saga_id} happened is not known:"
                        f" {outcome.why}."
                    )
                raise OutcomePending
