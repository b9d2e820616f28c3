"""A write to a provider whose `GET /operations/{key}` returns the answer stored under an idempotency key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import structlog

from libs.providers.errors import NO_DECISION, AttemptFailed, Failure, ProviderRefusal
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
from libs.providers.sandbox.http import ProviderClient
from libs.providers.writing import Capabilities

KEY_ERRORS = frozenset({"idempotency_key_reused", "duplicate_transaction"})
"""The key or id is used already, which does not say whether this write was refused."""

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)

_log = structlog.get_logger("providers")


@dataclass(frozen=True)
class KeyedWrite(Generic[AnswerT]):
    """See `writing.ProviderWrite`.

    Args:
        model: the fields of the provider's answer that are used; others are ignored.
        reasons: our reasons by the provider's codes; any other code is PROVIDER_REFUSED.
    """

    client: ProviderClient
    capabilities: Capabilities
    operation: str
    method: Literal["POST", "PATCH"]
    path: str
    body: Any
    model: type[AnswerT]
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    finds_only_sends: bool = field(default=True, init=False)

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        try:
            answer = await self.client.send(
                self.operation,
                self.method,
                self.path,
                self.body,
                idempotency_key=str(key),
                deadline=deadline,
            )
        except ProviderRefusal as refusal:
            return self._refused(refusal)
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect:
                return NotSent(str(error))
            return Unknown(str(error))
        return self._accepted(answer)

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        try:
            stored = await self.client.stored_answer(str(key), deadline=deadline)
        except ProviderRefusal as refusal:
            return self._refused(refusal)
        except AttemptFailed as error:
            return Unknown(str(error))
        if stored is None:
            return Absent()
        found = self._accepted(stored.body)
        if isinstance(found, Unknown):
            # The stored answer will be the same at every look-up.
            return Unknown(
                "the provider carried it out, and its answer is not understood", needs_operator=True
            )
        return found

    def _accepted(self, answer: Any) -> Accepted[AnswerT] | Unknown:
        try:
            return Accepted(msgspec.convert(answer, self.model))
        except msgspec.ValidationError:
            return Unknown(f"{Failure.UNREADABLE}: the answer has another shape")

    def _refused(self, refusal: ProviderRefusal) -> Refused | Unknown:
        """`Refused`, unless the provider did not decide on the write."""
        if refusal.status in NO_DECISION or refusal.code in KEY_ERRORS:
            _log.error(
                "provider_does_not_decide",
                operation=self.operation,
                status=refusal.status,
                code=refusal.code,
            )
            return Unknown(str(refusal))
        reason = self.reasons.get(refusal.code, Reason.PROVIDER_REFUSED)
        return Refused(reason, refusal.code, refusal.message)
