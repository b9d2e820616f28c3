"""The operator family as a test wants it to answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from libs.contracts.model import Command
from libs.contracts.operating.sessions import GET_SESSION, LOG_OUT, SessionView
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from services.console.gateway import OperatorApi

TOKEN = "t" * 43
AT = datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)


@dataclass
class GatewayDouble:
    """A gateway that gives prepared answers and notes what it was asked.

    Args:
        answers: by the names of operations: data, an error that is raised, or a function of the command.
        asked: the commands so far, with the names of their operations and the token of their session.
        browsers: the addresses of the browsers that it was asked for.
    """

    role: Role = Role.ADMIN
    enrolment_needed: bool = False
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Command, str | None]] = field(default_factory=list)
    browsers: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers[LOG_OUT.name] = None

    def of(self, token: str | None, browser: str | None = None) -> OperatorApi:
        self.browsers.append(browser)
        return _OperatorApiDouble(self, token)

    def answer(self, operation: Operation, answer: Any) -> None:
        self.answers[operation.name] = answer

    def commands(self, operation: Operation) -> list[Any]:
        return [command for name, command, _ in self.asked if name == operation.name]


@dataclass
class _OperatorApiDouble:
    gateway: GatewayDouble
    token: str | None

    async def ask(self, operation: Operation[Any, Any], command: Command) -> Any:
        gateway = self.gateway
        gateway.asked.append((operation.name, command, self.token))
        if operation is GET_SESSION and operation.name not in gateway.answers:
            return SessionView(
                name="ada",
                role=gateway.role,
                expires_at=AT,
                enrolment_needed=gateway.enrolment_needed,
            )
        answer = gateway.answers[operation.name]
        if callable(answer):
            answer = answer(command)
        if isinstance(answer, Exception):
            raise answer
        return answer
