"""Calls that change something at a provider, each in three commits' worth of safety: intent, call, result.

A saga is run from its start as often as it takes. A step that is done gives its stored answer, one that was refused its
stored refusal; one that was only intended is asked about at the provider before it is sent again, under the same key.

Crash points of every step: `onboarding.<step>.intended`, `.called`, `.recorded` (a step's number, as in
`verify_person.2`, is left off).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import structlog
from prometheus_client import Counter
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.errors import OutcomePending
from libs.providers.errors import NO_DECISION, ProviderNotReached, ProviderRefusal, ProviderUnknown
from libs.runtime.commands import Drive
from libs.runtime.crash import crash_point
from services.onboarding.ids import derived
from services.onboarding.ports import Attempt
from services.onboarding.repository import steps
from services.onboarding.repository.steps import SagaName

STEP_SECONDS = 10.0
"""The longest one attempt at a step may take, the question about an earlier attempt included."""

STEPS = Counter("bankside_onboarding_steps", "Attempts at saga steps", ("step", "outcome"))
COMPENSATIONS_REFUSED = Counter(
    "bankside_onboarding_compensations_refused",
    "Compensations that a provider refused: an operator has to see to them",
    ("step",),
)

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)
Call = Callable[[Attempt], Awaitable[AnswerT]]
Then = Callable[[AsyncConnection, AnswerT], Awaitable[None]]
"""What else to write in the transaction that records the answer."""

_log = structlog.get_logger("saga")


class StepRefused(Exception):
    """The provider's definite no to a step."""

    def __init__(self, step: str, status: int, code: str) -> None:
        super().__init__(f"{step}: {status} {code}")
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
        call: Call[AnswerT],
        *,
        then: Then[AnswerT] | None = None,
    ) -> AnswerT:
        """As `step`, for the one before which no provider knows of the saga.

        Raises:
            NothingSent: it certainly did not reach the provider.
            StepRefused, OutcomePending: as `step`.
        """
        return await self._step(step, answer, call, then, compensation=False)

    async def step(
        self,
        step: str,
        answer: type[AnswerT],
        call: Call[AnswerT],
        *,
        then: Then[AnswerT] | None = None,
    ) -> AnswerT:
        """The provider's answer, of now or of an earlier run.

        Raises:
            StepRefused: the provider's definite no, of now or of an earlier run.
            OutcomePending: not known, or not reached: run the saga again.
        """
        try:
            return await self._step(step, answer, call, then, compensation=False)
        except NothingSent as error:
            raise OutcomePending from error

    async def compensate(self, step: str, answer: type[AnswerT], call: Call[AnswerT]) -> None:
        """Take something back. A refusal is kept, counted and logged, and does not stop what else is to be taken back.

        Raises:
            OutcomePending: not known, or not reached: run the saga again.
        """
        try:
            await self._step(step, answer, call, None, compensation=True)
        except NothingSent as error:
            raise OutcomePending from error
        except StepRefused as refused:
            COMPENSATIONS_REFUSED.labels(_point(step)).inc()
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
        call: Call[AnswerT],
        then: Then[AnswerT] | None,
        *,
        compensation: bool,
    ) -> AnswerT:
        point = _point(step)
        key = derived(self.name.saga_id, step)
        async with self.drive.transaction() as connection:
            recorded, is_new = await steps.intend(
                connection, self.name, step, key, compensation=compensation
            )
        match recorded.state:
            case "done":
                return msgspec.convert(recorded.result, answer)
            case "refused":
                raise StepRefused(step, recorded.refusal_status or 0, recorded.refusal_code or "")
            case "intended":
                crash_point(f"onboarding.{point}.intended")
        attempt = Attempt(key, time.time() + STEP_SECONDS, resumed=not is_new)
        try:
            result = await call(attempt)
        except ProviderRefusal as refusal:
            await self._refused(step, refusal, is_new)
            raise StepRefused(step, refusal.status, refusal.code) from refusal
        except ProviderNotReached as error:
            STEPS.labels(point, "not_reached").inc()
            await self._withdraw(step)
            raise NothingSent(step) from error
        except ProviderUnknown as error:
            STEPS.labels(point, "unknown").inc()
            raise OutcomePending from error
        crash_point(f"onboarding.{point}.called")
        async with self.drive.transaction() as connection:
            await steps.set_done(connection, self.name, step, msgspec.to_builtins(result))
            if then is not None:
                await then(connection, result)
        STEPS.labels(point, "done").inc()
        crash_point(f"onboarding.{point}.recorded")
        return result

    async def _refused(self, step: str, refusal: ProviderRefusal, is_new: bool) -> None:
        """Store the refusal, unless it is no decision."""
        point = _point(step)
        if refusal.status in NO_DECISION:
            STEPS.labels(point, "turned_away").inc()
            _log.error("provider_turns_away", step=step, status=refusal.status, code=refusal.code)
            if is_new:
                await self._withdraw(step)
                raise NothingSent(step) from refusal
            raise OutcomePending from refusal
        STEPS.labels(point, "refused").inc()
        _log.warning(
            "step_refused",
            saga=str(self.name.saga_id),
            step=step,
            status=refusal.status,
            code=refusal.code,
        )
        crash_point(f"onboarding.{point}.called")
        async with self.drive.transaction() as connection:
            await steps.set_refused(connection, self.name, step, refusal.status, refusal.code)
        crash_point(f"onboarding.{point}.recorded")

    async def _withdraw(self, step: str) -> None:
        async with self.drive.transaction() as connection:
            await steps.withdraw(connection, self.name, step)


def _point(step: str) -> str:
    return step.partition(".")[0]
