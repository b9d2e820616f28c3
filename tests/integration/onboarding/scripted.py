"""A write whose answers each test decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

from libs.providers.outcomes import Absent, Accepted, Finding, NotSent, Outcome
from libs.providers.writing import Capabilities
from tests.support.capabilities import FOR_EVER

AnswerT = TypeVar("AnswerT")


@dataclass
class ScriptedWrite(Generic[AnswerT]):
    """Answers sends and questions one after the other, then accepts; notes which came."""

    accepted: AnswerT
    answers: list[Any] = field(default_factory=list)
    capabilities: Capabilities = FOR_EVER
    operation: str = "scripted"
    finds_only_sends: bool = True
    calls: list[str] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    """Of the sends."""

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        self.calls.append("send")
        self.deadlines.append(deadline)
        answer: Any = self.answers.pop(0) if self.answers else Accepted(self.accepted)
        assert not isinstance(answer, Absent)
        result: Outcome[AnswerT] = answer
        return result

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        self.calls.append("find")
        answer: Any = self.answers.pop(0) if self.answers else Absent()
        assert not isinstance(answer, NotSent)
        result: Finding[AnswerT] = answer
        return result
