"""How soon a session with the broker is replaced."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

from libs.messaging import broker as broker_module
from libs.messaging.broker import Broker
from libs.messaging.session import Session
from tests.integration.readiness import is_ready
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually


@dataclass
class NotedPauses:
    """In the place of the backoff: pauses for no time."""

    after_failures: list[int] = field(default_factory=list)

    def pause_seconds(self, failures: int) -> float:
        self.after_failures.append(failures)
        return 0.0


class Ending:
    """A part that ends so many sessions at once, as a message does that no client survives."""

    def __init__(self, sessions: int) -> None:
        self.left = sessions

    async def attach(self, session: Session) -> None:
        if self.left:
            self.left -= 1
            session.lose("of the test")

    def detach(self) -> None: ...


@pytest.mark.parametrize(("steady_seconds", "pauses"), [(60.0, [2, 3, 4, 5]), (0.0, [1, 1, 1, 1])])
async def test_pauses_grow_after_sessions_that_end_at_once_and_not_after_those_that_lasted(
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    steady_seconds: float,
    pauses: list[int],
) -> None:
    noted = NotedPauses()
    monkeypatch.setattr(broker_module, "RECONNECTS", noted)
    monkeypatch.setattr(broker_module, "STEADY_SECONDS", steady_seconds)
    broker = Broker(environment.amqp_url, "tests")
    broker.add(Ending(4))

    async with broker.open():
        await broker.start()
        await eventually("a session that lasts", partial(is_ready, broker))

    assert noted.after_failures == pauses
