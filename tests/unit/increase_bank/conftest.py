"""A bank in this process, and the SDK's own client of it, which refuses answers that are not of its types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from increase import AsyncIncrease

from tests.support.increase_bank.server import RunningBank, running_bank
from tests.support.increase_clients import client_of


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningBank]:
    async with running_bank(
        tmp_path, {"a-key-that-may-all": "everything", "a-key-that-reads": "read"}
    ) as bank:
        bank.bank.conduct.wire_seconds = 0.0
        yield bank


@pytest.fixture
async def increase(running: RunningBank) -> AsyncIterator[AsyncIncrease]:
    async with client_of(running.url, "a-key-that-may-all") as client:
        yield client
