"""How long the dispatcher waits when there is nothing that it may begin."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from libs.persistence.engine import open_database
from libs.persistence.sealing import Keyring
from services.webhook_dispatcher.engine.dispatcher import Dispatcher
from services.webhook_dispatcher.engine.due_subscriptions import POLL_SECONDS
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.ports import Attempt, Post
from tests.support.waiting import eventually
from tests.unit.persistence.keys import a_key


class NoPoster:
    async def post(self, post: Post) -> Attempt:
        raise AssertionError("nothing may be begun")


def dispatcher(slots: int) -> Dispatcher:
    return Dispatcher(
        open_database("postgresql://never@127.0.0.1:9/connected", "webhook_dispatcher"),
        NoPoster(),
        Signer(Keyring(f"k1:{a_key()}")),
        DeliverySettings(slots=slots),
        lambda: datetime.now(UTC),
        lambda sent: None,
    )


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_while_nothing_may_be_begun_a_sweep_that_is_due_is_not_asked_for_all_the_time(
    is_stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float | None] = []
    timeout = asyncio.timeout

    def noted(delay: float | None) -> asyncio.Timeout:
        pauses.append(delay)
        return timeout(delay)

    idle = dispatcher(slots=1 if is_stopped else 0)
    if is_stopped:
        await idle.stop(1)
    monkeypatch.setattr(asyncio, "timeout", noted)

    async def waited_twice() -> bool:
        return len(pauses) >= 2

    running = asyncio.create_task(idle.run())
    await eventually("two pauses", waited_twice)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert set(pauses) == {POLL_SECONDS}
