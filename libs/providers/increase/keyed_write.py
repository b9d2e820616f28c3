"""A POST to Increase under an idempotency key, and the lookup of the object that it made.

A key makes one object, which carries it for ever: the object is found by it. A refusal is not kept under its key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar
from uuid import UUID

import structlog
from increase import AsyncIncrease

from libs.providers.errors import AttemptFailed, ProviderRefusal
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.refusals import DECIDED, NOT_FOUND, KeyUsed
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
from libs.providers.writing import Capabilities


class KeyedObject(Protocol):
    """An object of Increase's that a POST under a key made."""

    id: str
    idempotency_key: str | None


ObjectT = TypeVar("ObjectT", bound=KeyedObject)
ObjectT_co = TypeVar("ObjectT_co", covariant=True)
AnswerT = TypeVar("AnswerT")


class Listed(Protocol[ObjectT_co]):
    """A page of a list of the SDK's."""

    @property
    def data(self) -> Sequence[ObjectT_co]: ...


WhyRefused = Callable[[ProviderRefusal, float], Awaitable[Reason]]
"""Our reason for a refusal, found out within a deadline. Reads only."""

_log = structlog.get_logger("providers")


async def no_reason(_: ProviderRefusal, __: float) -> Reason:
    return Reason.PROVIDER_REFUSED


@dataclass(frozen=True)
class KeyedWrite(Generic[ObjectT, AnswerT]):
    """See `writing.ProviderWrite`.

    Args:
        operation: for metrics and logs.
        create: the POST, under the key that it is given.
        having_key: the list of such objects, filtered by the key that it is given.
        retrieve: the object with the id that it is given.
        answer: what the object says of this write; None when it was made by another one.
    """

    client: IncreaseClient
    capabilities: Capabilities
    operation: str
    create: Callable[[AsyncIncrease, str], Awaitable[ObjectT]]
    having_key: Callable[[AsyncIncrease, str], Awaitable[Listed[ObjectT]]]
    retrieve: Callable[[AsyncIncrease, str], Awaitable[ObjectT]]
    answer: Callable[[ObjectT], AnswerT | None]
    why_refused: WhyRefused = no_reason
    finds_only_sends: bool = field(default=True, init=False)

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        try:
            made = await self.client.once(
                self.operation, lambda sdk: self.create(sdk, str(key)), deadline=deadline
            )
        except KeyUsed as used:
            return await self._made_before(used.object_id, key, deadline)
        except ProviderRefusal as refusal:
            return await self._refused(refusal, deadline)
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect:
                return NotSent(str(error))
            return Unknown(str(error))
        return self._accepted(made, key)

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        try:
            page = await self.client.repeated(
                f"find_{self.operation}",
                lambda sdk: self.having_key(sdk, str(key)),
                deadline=deadline,
            )
        except (ProviderRefusal, AttemptFailed) as error:
            return Unknown(str(error))
        match page.data:
            case []:
                return Absent()
            case [found]:
                return self._accepted(found, key)
            case _:
                return Unknown("the list is not filtered by the key", needs_operator=True)

    async def _made_before(
        self, object_id: str, key: UUID, deadline: float
    ) -> Accepted[AnswerT] | Unknown:
        """The object that an earlier send made. It may be of another kind: then the key was used for another write."""
        try:
            made = await self.client.repeated(
                f"find_{self.operation}",
                lambda sdk: self.retrieve(sdk, object_id),
                deadline=deadline,
            )
        except ProviderRefusal as refusal:
            if refusal.code == NOT_FOUND:
                return Unknown("the key has made another object", needs_operator=True)
            return Unknown(str(refusal))
        except AttemptFailed as error:
            return Unknown(str(error))
        accepted = self._accepted(made, key)
        return replace(accepted, was_found=True) if isinstance(accepted, Accepted) else accepted

    def _accepted(self, made: ObjectT, key: UUID) -> Accepted[AnswerT] | Unknown:
        answer = self.answer(made) if made.idempotency_key == str(key) else None
        if answer is None:
            # The answer will be the same at every attempt.
            _log.error("answer_is_about_another_write", operation=self.operation, object=made.id)
            return Unknown("the answer is about another write", needs_operator=True)
        return Accepted(answer)

    async def _refused(self, refusal: ProviderRefusal, deadline: float) -> Refused | Unknown:
        """`Refused`, unless Increase did not decide on the write."""
        if refusal.code not in DECIDED:
            _log.error(
                "provider_does_not_decide",
                operation=self.operation,
                status=refusal.status,
                code=refusal.code,
            )
            return Unknown(str(refusal))
        reason = await self.why_refused(refusal, deadline)
        return Refused(reason, refusal.code, refusal.message)
