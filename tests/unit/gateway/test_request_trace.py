"""The way of a request is put together of what services have, as far as they answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.contracts.errors import ProviderTimeout, Unavailable
from libs.contracts.model import Command
from libs.contracts.operating.requests import (
    NOTHING_RECORDED,
    STEPS_OF,
    TRACE_REQUEST,
    FindSteps,
    FoundSteps,
    RequestTrace,
    StepKind,
    TraceRequest,
    TraceStep,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import SERVICE, Principal
from libs.contracts.result import Result
from services.console.settings import Settings as ConsoleSettings
from services.gateway.operating import asking, request_trace
from services.gateway.operating.asking import Services
from services.gateway.operating.request_trace import RequestTraces
from services.gateway.settings import Settings as GatewaySettings
from tests.support.pace import pace

ANSWER_SECONDS: float = ConsoleSettings.model_fields["answer_seconds"].default
LISTENER_SECONDS: float = GatewaySettings.model_fields["deadline_seconds"].default
BEGINNING = datetime(2026, 11, 23, tzinfo=UTC)


def step(second: int, service: str, kind: StepKind, **values: Any) -> TraceStep:
    at = BEGINNING + timedelta(seconds=second)
    return TraceStep(at=at, service=service, kind=kind, what="test", **values)


@dataclass
class Clock:
    """The time of what asks services. It goes on where one of them lets its caller wait."""

    now: float = field(default_factory=time.time)

    def time(self) -> float:
        return self.now


class Sender:
    """Services that have what the test says, and nothing otherwise.

    Args:
        clock: goes on to the deadline of a question that is answered with ProviderTimeout.
    """

    def __init__(self, clock: Clock | None = None, **found: FoundSteps | Exception) -> None:
        self.clock = clock or Clock()
        self.found = found
        self.asked: dict[str, FindSteps] = {}
        self.deadlines: dict[str, float] = {}

    async def query(
        self, operation: Operation, _: Principal, command: Command, deadline: float
    ) -> Any:
        assert isinstance(command, FindSteps)
        self.deadlines[operation.service] = deadline
        self.asked[operation.service] = command
        answer = self.found.get(operation.service, FoundSteps(steps=[]))
        if isinstance(answer, ProviderTimeout):
            self.clock.now = deadline
        if isinstance(answer, Exception):
            raise answer
        return {"data": answer.model_dump(mode="json")}


async def of_the_gateway(*_: object) -> Result:
    return Result(FoundSteps(steps=[]))


async def traced(sender: Sender, deadline: float | None = None) -> RequestTrace:
    services = Services(sender, {STEPS_OF["gateway"].name: of_the_gateway})
    handler = RequestTraces(services).by_operation()[TRACE_REQUEST.name]
    deadline = deadline or time.time() + 5 * pace()
    result = await handler(SERVICE, TraceRequest(request_id="req-1"), deadline)
    assert isinstance(result.data, RequestTrace)
    return result.data


async def test_steps_of_all_services_are_in_the_order_of_time() -> None:
    sender = Sender(
        payments=FoundSteps(
            steps=[step(0, "payments", StepKind.COMMAND), step(4, "payments", StepKind.RESULT)],
            resource_ids=["wire-1", "wire-1"],
        ),
        webhook_dispatcher=FoundSteps(
            steps=[step(2, "webhook_dispatcher", StepKind.EVENT)], is_cut=True
        ),
    )

    found = await traced(sender)

    assert [one.kind for one in found.steps] == ["command", "event", "result"]
    assert (found.cut, found.unreachable, found.note) == (["webhook_dispatcher"], [], None)
    assert sender.asked.keys() == STEPS_OF.keys() - {"gateway"}
    assert sender.asked["webhook_dispatcher"].resource_ids == ["wire-1"]


async def test_the_service_that_is_asked_last_has_time_after_the_others() -> None:
    sender = Sender()

    await traced(sender)

    last = sender.deadlines.pop("webhook_dispatcher")
    assert max(sender.deadlines.values()) < last


async def test_services_that_let_their_caller_wait_are_named_while_a_console_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    begun = clock.now
    monkeypatch.setattr(request_trace, "time", clock)
    monkeypatch.setattr(asking, "time", clock)
    shown = step(0, "payments", StepKind.COMMAND)
    sender = Sender(
        clock,
        payments=FoundSteps(steps=[shown]),
        onboarding=ProviderTimeout(),
        webhook_dispatcher=ProviderTimeout(),
    )

    found = await traced(sender, begun + LISTENER_SECONDS)

    assert found.steps == [shown]
    assert found.unreachable == ["onboarding", "webhook_dispatcher"]
    assert clock.now - begun < ANSWER_SECONDS


async def test_an_event_that_arrived_meanwhile_is_there_once() -> None:
    waits = step(0, "payments", StepKind.EVENT, event_id="evt_1", state="not published yet")
    still = step(1, "payments", StepKind.EVENT, event_id="evt_2", state="not published yet")
    arrived = step(2, "webhook_dispatcher", StepKind.EVENT, event_id="evt_1")
    sender = Sender(
        payments=FoundSteps(steps=[waits, still]),
        webhook_dispatcher=FoundSteps(steps=[arrived]),
    )

    assert (await traced(sender)).steps == [still, arrived]


async def test_a_service_that_does_not_answer_is_named_and_the_others_are_shown() -> None:
    shown = step(0, "payments", StepKind.COMMAND)
    sender = Sender(
        payments=FoundSteps(steps=[shown]),
        onboarding=Unavailable(),
        webhook_dispatcher=Unavailable(),
    )

    found = await traced(sender)

    assert found.steps == [shown]
    assert found.unreachable == ["onboarding", "webhook_dispatcher"]


async def test_that_nothing_is_recorded_is_said_only_when_all_have_answered() -> None:
    nowhere = await traced(Sender())
    perhaps = await traced(Sender(payments=Unavailable()))

    assert (nowhere.steps, nowhere.note) == ([], NOTHING_RECORDED)
    assert (perhaps.steps, perhaps.note) == ([], None)
