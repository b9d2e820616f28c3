"""What the log says of a broker that is away."""

from __future__ import annotations

from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from libs.backoff import Backoff
from libs.messaging import broker as broker_module
from libs.messaging.broker import Broker
from tests.support.waiting import eventually

ATTEMPTS = 20


async def test_a_broker_that_is_not_reached_is_a_line_and_not_one_for_each_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = 0

    async def refused(*_: object, **__: object) -> NoReturn:
        nonlocal attempts
        attempts += 1
        raise ConnectionRefusedError

    async def all_made() -> bool:
        return attempts >= ATTEMPTS

    monkeypatch.setattr(broker_module, "connect", refused)
    monkeypatch.setattr(broker_module, "RECONNECTS", Backoff(0.001, 0.001))
    broker = Broker("amqp://payments:password@broker/", "payments")

    with capture_logs() as logs:
        async with broker.open():
            await broker.start()
            await eventually("the attempts", all_made)

    [line] = [line for line in logs if line["event"] == "broker_unreachable"]
    assert (line["error"], line["left_out"]) == ("ConnectionRefusedError", 0)
