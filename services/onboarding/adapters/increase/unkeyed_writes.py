"""Writes to which Increase gives no idempotency key, or which need none.

A change of an object is looked up by reading the object. One that sets what is there already has no effect, so that it
may be sent again: but a copy that arrives late would undo a later change, so that none is sent while an earlier one may
be on its way (`Capabilities.takes_keys`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar
from uuid import UUID

import structlog
from increase import AsyncIncrease

from libs.providers.errors import AttemptFailed, ProviderRefusal
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.refusals import DECIDED
from libs.providers.outcomes import (
    Absent,
    Accepted,
    Finding,
    NotSent,
    Outcome,
    Reason,
    Refused,
    Unknown,
)
from libs.providers.writing import Capabilities, ProviderWrite

ObjectT = TypeVar("ObjectT")
AnswerT = TypeVar("AnswerT")
MadeT = TypeVar("MadeT")

_log = structlog.get_logger("providers")


def of_changes(writes: Capabilities, *, is_shown: bool = True) -> Capabilities:
    """Of what is changed by PATCH, which takes no keys, so that none is forgotten.

    Args:
        is_shown: the object shows for certain whether it was changed.
    """
    return replace(writes, keys_remembered_seconds=None, takes_keys=False, shows_writes=is_shown)


@dataclass(frozen=True)
class Change(Generic[ObjectT, AnswerT]):
    """Brings an object into a state. See `writing.ProviderWrite`.

    Args:
        change: the request, and the object that it answers.
        read: the object.
        is_made: whether the object is in the state.
        answer: what the object says then.
    """

    client: IncreaseClient
    capabilities: Capabilities
    operation: str
    change: Callable[[AsyncIncrease, str], Awaitable[ObjectT]]
    read: Callable[[AsyncIncrease], Awaitable[ObjectT]]
    is_made: Callable[[ObjectT], bool]
    answer: Callable[[ObjectT], AnswerT]
    finds_only_sends: bool = field(default=False, init=False)

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        try:
            changed = await self.client.once(
                self.operation, lambda sdk: self.change(sdk, str(key)), deadline=deadline
            )
        except ProviderRefusal as refusal:
            return await self._refused(refusal, key, deadline)
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect:
                return NotSent(str(error))
            return Unknown(str(error))
        return Accepted(self.answer(changed))

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        try:
            found = await self.client.repeated(
                f"find_{self.operation}", self.read, deadline=deadline
            )
        except (ProviderRefusal, AttemptFailed) as error:
            return Unknown(str(error))
        return Accepted(self.answer(found)) if self.is_made(found) else Absent()

    async def _refused(
        self, refusal: ProviderRefusal, key: UUID, deadline: float
    ) -> Accepted[AnswerT] | Refused | Unknown:
        """What is in the state already may be refused."""
        if not is_decision(refusal, self.operation):
            return Unknown(str(refusal))
        found = await self.find(key, deadline)
        if isinstance(found, Absent):
            return Refused(Reason.PROVIDER_REFUSED, refusal.code, refusal.message)
        if isinstance(found, Unknown):
            return Unknown(found.why)
        return found


@dataclass(frozen=True)
class Reading(Generic[ObjectT, AnswerT]):
    """Where our providers are written to, and Increase has what is needed already: it is read. Nothing is changed.

    Args:
        answer: what the object says; Refused, when it has come to its end.
    """

    client: IncreaseClient
    capabilities: Capabilities
    operation: str
    read: Callable[[AsyncIncrease], Awaitable[ObjectT]]
    answer: Callable[[ObjectT], Accepted[AnswerT] | Refused | Unknown]
    finds_only_sends: bool = field(default=False, init=False)

    async def send(self, _: UUID, deadline: float) -> Outcome[AnswerT]:
        try:
            return await self._answer(deadline)
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect:
                return NotSent(str(error))
            return Unknown(str(error))

    async def find(self, _: UUID, deadline: float) -> Finding[AnswerT]:
        try:
            return await self._answer(deadline)
        except AttemptFailed as error:
            return Unknown(str(error))

    async def _answer(self, deadline: float) -> Accepted[AnswerT] | Refused | Unknown:
        try:
            found = await self.client.repeated(self.operation, self.read, deadline=deadline)
        except ProviderRefusal as refusal:
            return Unknown(str(refusal))
        return self.answer(found)


@dataclass(frozen=True)
class ThenRead(Generic[MadeT, AnswerT]):
    """A write, and what is then read for its answer.

    Args:
        reading: of what the write has made.
    """

    write: ProviderWrite[MadeT]
    reading: Callable[[MadeT], ProviderWrite[AnswerT]]

    @property
    def operation(self) -> str:
        return self.write.operation

    @property
    def capabilities(self) -> Capabilities:
        return self.write.capabilities

    @property
    def finds_only_sends(self) -> bool:
        return self.write.finds_only_sends

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        made = await self.write.send(key, deadline)
        if not isinstance(made, Accepted):
            return made
        return await self._read(made.answer, key, deadline)

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        made = await self.write.find(key, deadline)
        if not isinstance(made, Accepted):
            return made
        return await self._read(made.answer, key, deadline)

    async def _read(self, made: MadeT, key: UUID, deadline: float) -> Accepted[AnswerT] | Unknown:
        """What the write made, read back. An outcome that is not known is of the reading: the write is made."""
        read = await self.reading(made).find(key, deadline)
        if isinstance(read, Accepted | Unknown):
            return read
        return Unknown("the write is made, and its answer cannot be read")


@dataclass(frozen=True)
class Known(Generic[AnswerT]):
    """Where the answer is known without asking: another step sees to it."""

    operation: str
    capabilities: Capabilities
    answer: AnswerT
    finds_only_sends: bool = field(default=False, init=False)

    async def send(self, _: UUID, __: float) -> Outcome[AnswerT]:
        return Accepted(self.answer)

    async def find(self, _: UUID, __: float) -> Finding[AnswerT]:
        return Accepted(self.answer)


def is_decision(refusal: ProviderRefusal, operation: str) -> bool:
    """Whether Increase has looked at the request and said no."""
    if refusal.code in DECIDED:
        return True
    _log.error(
        "provider_does_not_decide", operation=operation, status=refusal.status, code=refusal.code
    )
    return False
