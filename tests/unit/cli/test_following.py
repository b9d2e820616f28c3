"""`bankside events tail` that follows the events: how it ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.unit.cli.running import Running
from tests.unit.client.answering import HANG, gateway, success

EVENT = {
    "id": "evt_8",
    "type": "wire.completed",
    "timestamp": "2026-11-23T10:00:00.000000Z",
    "api_version": "0.1.0",
    "sequence": 8,
    "data": {"object": "wire", "transaction_id": "t1"},
}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=lambda signum: signum.name)
@pytest.mark.parametrize("answered", [0, 2], ids=["from the start", "after an event"])
async def test_it_ends_at_once_also_while_the_gateway_does_not_answer(
    tmp_path: Path, answered: int, signum: signal.Signals
) -> None:
    answers = [success([]), success([EVENT])][:answered]
    async with gateway(*answers, HANG) as server:
        command = Running(tmp_path, server.base_url, "events", "tail")
        await server.has_received(answered + 1)
        command.signal(signum)
        ended = await command.ended()

    assert ended == (0, "")
    assert command.out.count("evt_8") == answered // 2
