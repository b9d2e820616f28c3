"""Writes at providers: that a send begins is committed, the write is sent, its outcome is committed.

The outcome of a step shares its commit with the intent of the next one, where that is certain by then. A saga is run
from its start as often as it takes. A step that is done gives its stored answer, one that was refused its stored
refusal. Any other step is attempted by the rule of `libs.providers.writing`, under the same key each time.

Crash points of every step: `onboarding.<step>.intended`, `.called`, `.recorded` (a step's number, as in
`verify_person.2`, is left off).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import msgspec
import structlog
from prometheus_client import Counter

from libs.contracts.errors import OutcomePending
from libs.handling.commands import Drive
from libs.handling.parking import NeedsOperator
from libs.persistence import continuity
from libs.providers.outcomes import Accepted, NotSent, Outcome, Reason, Refused, Unknown
from libs.providers.writing import Attempt, ProviderWrite, write_once
from libs.runtime.crash import crash_point
from services.onboarding.ids import derived
from services.onboarding.repository import steps
from services.onboarding.repository.step_commits import ADVANCE, Advance, Intent, StepDone
from services.onboarding.repository.steps import Begun, Done, SagaName, StepRefusal
from services.onboarding.step_answers import ANSWERS, role_of, without_number

STEP_SECONDS = 10.0
"""The longest one attempt at a step may take, the question about an earlier attempt included."""

STEPS = Counter("bankside_onboarding_steps", "Attempts at saga steps", ("step", "outcome"))
COMPENSATIONS_REFUSED = Counter(
    "bankside_onboarding_compensations_refused",
    "Compensations that a provider refused: an operator has to see to them",
    ("step",),
)

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)
Record = Callable[[Advance, AnswerT], Awaitable[Begun | None]]
"""Commits the advance of the saga by an answer, with what else is written then. Gives the attempt at the step that the
advance intends, as the commit of `ADVANCE` does.
"""

_log = structlog.get_logger("saga")


def saga_of_change(drive: Drive, saga_id: UUID, customer_id: UUID) -> Saga:
    """The saga by which the command that is driven changes a customer."""
    name = SagaName(
        saga_id=saga_id,
        tenant=drive.principal.tenant,
        customer_id=customer_id,
        operation=drive.operation,
    )
    return Saga(drive, name)


class StepRefused(Exception):
    """The provider's definite no to a step. `words`: see `Refused.words`."""

    def __init__(self, step: str, reason: Reason, words: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.reason = reason
        self.words = words


class NothingSent(Exception):
    """A step certainly did not reach its provider, and its intent is withdrawn."""


class Saga:
    """The steps of one accepted command, whichever command drives them."""

    def __init__(self, drive: Drive, name: SagaName) -> None:
        self.drive = drive
        self.name = name
        self.found: set[str] = set()
        """Steps whose provider had carried them out before this drive, which has looked them up."""
        self._intended: dict[str, Begun] = {}
        """Steps whose intent this drive has committed, and that it has not sent yet."""
        self._deadlines: dict[str, float] = {}
        """Of the sends of steps, taken before their intents are committed: a process that stood still after the commit
        must not send when others count the send as arrived.
        """

    async def step_of_unknown_saga(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        *,
        record: Record[AnswerT] | None = None,
        following: str | None = None,
    ) -> AnswerT:
        """As `step`, for a step before which no provider knows of the saga. If it was certainly not sent, the saga can
        be dropped.

        Raises:
            NothingSent: it certainly did not reach the provider.
            StepRefused, OutcomePending, NeedsOperator: as `step`.
        """
        return await self._step(step, answer, write, record, following, compensation=False)

    async def step(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        *,
        record: Record[AnswerT] | None = None,
        following: str | None = None,
    ) -> AnswerT:
        """The provider's answer, of now or of an earlier run.

        Args:
            record: commits the answer, where more is written with it.
            following: the step that is certainly sent next; its intent is committed with the answer.

        Raises:
            StepRefused: the provider's definite no, of now or of an earlier run.
            OutcomePending: not known, or not reached: run the saga again.
            NeedsOperator: not known, and neither sending it again nor asking can tell.
        """
        try:
            return await self._step(step, answer, write, record, following, compensation=False)
        except NothingSent as error:
            raise OutcomePending from error

    async def compensate(
        self, step: str, answer: type[AnswerT], write: ProviderWrite[AnswerT]
    ) -> AnswerT | None:
        """Take something back. A refusal is kept, counted and logged, and does not stop what else is to be taken back.

        Returns the provider's answer, None when it refused.

        Raises:
            OutcomePending, NeedsOperator: as `step`.
        """
        try:
            return await self._step(step, answer, write, None, None, compensation=True)
        except NothingSent as error:
            raise OutcomePending from error
        except StepRefused:
            COMPENSATIONS_REFUSED.labels(without_number(step)).inc()
            _log.error(
                "compensation_refused",
                saga=str(self.name.saga_id),
                customer=str(self.name.customer_id),
                step=step,
            )
            return None

    def begin_intent(self, step: str, *, compensation: bool = False) -> Intent:
        """The intent of a step, and from now on the deadline of its send. It is to be committed now, and the step sent
        by this drive.
        """
        self._deadlines[step] = time.time() + STEP_SECONDS
        return Intent(step, derived(self.name.saga_id, step), compensation)

    def note_intent_committed(self, step: str, begun: Begun | None) -> None:
        """The intent of the step is committed, for this drive to send it; None: it was intended before."""
        if begun is not None:
            self._intended[step] = begun

    async def _step(
        self,
        step: str,
        answer: type[AnswerT],
        write: ProviderWrite[AnswerT],
        record: Record[AnswerT] | None,
        following: str | None,
        *,
        compensation: bool,
    ) -> AnswerT:
        assert ANSWERS[without_number(step)] is answer
        begun: Begun | None = None
        outcome: Outcome[AnswerT]
        match await self._begin(step, compensation=compensation):
            case Done(result, is_recorded):
                outcome = Accepted(msgspec.convert(result, answer))
                if is_recorded:
                    return outcome.answer
            case StepRefusal(reason, words, is_recorded):
                outcome = Refused(reason, words)
                if is_recorded:
                    raise StepRefused(step, reason, words)
            case Begun() as begun:
                crash_point(f"onboarding.{without_number(step)}.intended")
                key = derived(self.name.saga_id, step)
                attempt = Attempt(key, self._deadlines[step], STEP_SECONDS, begun.earlier)
                outcome = await write_once(write, attempt)
                if isinstance(outcome, Accepted) and outcome.was_found:
                    self.found.add(step)
                    if begun.found_means_lost and write.finds_only_sends:
                        await self._note_loss(step)
        return await self._conclude(step, outcome, record, following, begun)

    async def _note_loss(self, step: str) -> None:
        """Open a case: the provider has carried out a step of which this database knows no send.

        Once the answer is stored, the check of continuity finds nothing missing.
        """
        customer_id = str(self.name.customer_id)
        async with self.drive.transaction() as connection:
            await continuity.note_missing(connection, role_of(step), [customer_id])

    async def _begin(self, step: str, *, compensation: bool) -> Done | StepRefusal | Begun:
        """Commit that an attempt at the step begins, or find what came of the step."""
        if (begun := self._intended.pop(step, None)) is not None:
            return begun
        intent = self.begin_intent(step, compensation=compensation)
        begun = await self.drive.commit(ADVANCE, Advance(saga=self.name, intent=intent))
        if begun is not None:
            return begun
        async with self.drive.transaction() as connection:
            return await steps.take_up(
                connection, self.name, step, command_id=self.drive.command_id
            )

    async def _conclude(
        self,
        step: str,
        outcome: Outcome[AnswerT],
        record: Record[AnswerT] | None,
        following: str | None,
        begun: Begun | None,
    ) -> AnswerT:
        """Commit what came of an attempt; the answer, or raise."""
        point = without_number(step)
        match outcome:
            case Accepted(answer):
                crash_point(f"onboarding.{point}.called")
                await self._record(step, answer, record, following)
                STEPS.labels(point, "done").inc()
                crash_point(f"onboarding.{point}.recorded")
                return answer
            case Refused(reason, code):
                words = outcome.words
                crash_point(f"onboarding.{point}.called")
                async with self.drive.transaction() as connection:
                    await steps.set_refused(connection, self.name, step, reason, words)
                STEPS.labels(point, "refused").inc()
                _log.warning(
                    "step_refused",
                    saga=str(self.name.saga_id),
                    step=step,
                    reason=reason.value,
                    code=code,
                )
                crash_point(f"onboarding.{point}.recorded")
                raise StepRefused(step, reason, words)
            case NotSent():
                STEPS.labels(point, "not_sent").inc()
                async with self.drive.transaction() as connection:
                    await steps.withdraw(connection, self.name, step)
                raise NothingSent(step)
            case Unknown():
                STEPS.labels(point, "unknown").inc()
                if begun is not None and not outcome.sent:
                    async with self.drive.transaction() as connection:
                        await steps.not_sent_again(connection, self.name, step, begun)
                if outcome.needs_operator:
                    _log.error("write_needs_an_operator", saga=str(self.name.saga_id), step=step)
                    raise NeedsOperator(
                        f"Whether the step {step} of saga {self.name.saga_id} happened is not known:"
                        f" {outcome.why}."
                    )
                raise OutcomePending

    async def _record(
        self,
        step: str,
        answer: AnswerT,
        record: Record[AnswerT] | None,
        following: str | None,
    ) -> None:
        """Commit the answer with what else is to be written, and the intent of the following step."""
        advance = Advance(
            saga=self.name,
            done=StepDone(step, msgspec.to_builtins(answer)),
            intent=None if following is None else self.begin_intent(following),
        )
        if record is None:
            begun = await self.drive.commit(ADVANCE, advance)
        else:
            begun = await record(advance, answer)
        if following is not None:
            self.note_intent_committed(following, begun)
