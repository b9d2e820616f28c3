"""What the log says of a broker that is away, or not set up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pytest
from aio_pika.exceptions import ChannelPreconditionFailed, ProbableAuthenticationError
from aiormq.exceptions import InvalidFrameError
from structlog.testing import capture_logs
from structlog.typing import EventDict

from libs.backoff import Backoff
from libs.messaging import broker as broker_module
from libs.messaging.broker import Broker
from tests.support.waiting import eventually

ATTEMPTS = 20


@pytest.mark.parametrize(
    ("error", "event", "says"),
    [
        (ConnectionRefusedError(), "broker_unreachable", {"error": "ConnectionRefusedError"}),
        (ProbableAuthenticationError("refused"), "broker_not_set_up", {"refused": "refused"}),
        (ChannelPreconditionFailed("x-a"), "queue_has_other_arguments", {"refused": "x-a"}),
    ],
)
async def test_what_keeps_a_service_from_the_broker_is_a_line_and_not_one_for_each_attempt(
    monkeypatch: pytest.MonkeyPatch, error: Exception, event: str, says: Mapping[str, str]
) -> None:
    logs = await logged(monkeypatch, error)

    [line] = [line for line in logs if line["event"] == event]
    assert says.items() <= line.items()
    assert line["left_out"] == 0


async def test_a_virtual_host_that_is_not_opened_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So aiormq puts it, as `bankside doctor` is tested to know at a broker."""
    error = InvalidFrameError("Expected one of ['Connection.OpenOk'], got <Connection.Close>")

    logs = await logged(monkeypatch, error)

    [line] = [line for line in logs if line["event"] == "broker_not_set_up"]
    assert "virtual host" in line["detail"]
    assert "limit" in line["detail"]
    assert not any(line["event"] == "broker_unreachable" for line in logs)


async def logged(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[EventDict]:
    """What is logged while each attempt to connect raises this."""
    attempts = 0

    async def refused(*_: object, **__: object) -> NoReturn:
        nonlocal attempts
        attempts += 1
        raise error

    async def all_made() -> bool:
        return attempts >= ATTEMPTS

    monkeypatch.setattr(broker_module, "connect", refused)
    monkeypatch.setattr(broker_module, "RECONNECTS", Backoff(0.001, 0.001))
    broker = Broker("amqp://payments:password@broker/", "payments")

    with capture_logs() as logs:
        async with broker.open():
            await broker.start()
            await eventually("the attempts", all_made)
    return list(logs)
