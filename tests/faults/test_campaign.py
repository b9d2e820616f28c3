"""The beginning of `make faults` on the run's servers: processes, the bank and callers are broken, one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.campaign import run as running
from tests.faults.campaign.callers import new_callers
from tests.faults.campaign.faults import FAULTS
from tests.faults.campaign.replicas import running_fleet
from tests.faults.campaign.report import table
from tests.support.infrastructure import Environment

MINUTES = 0.1
"""Three to six faults, by how fast the machine is, and some seconds before and after them."""
RATE = 3.0
"""Operations a second: other tests run beside it. After each fault there is one of each kind besides."""
QUIET_SECONDS = 1.5
PROBES_SECONDS = 0.25
"""Less often than in `make faults`, which measures recoveries."""
SEED = int(os.environ.get("SEED") or 6)
"""Its first four faults differ: a process is killed twice, one once, both of a service, and callers vanish."""


async def test_some_of_its_faults_lose_and_double_nothing(
    fresh_environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "QUIET_SECONDS", (QUIET_SECONDS, QUIET_SECONDS))
    monkeypatch.setattr(running, "PROBES_SECONDS", PROBES_SECONDS)
    lines: list[str] = []

    async with (
        running_fleet(fresh_environment, tmp_path) as fleet,
        new_callers(fleet, SEED) as callers,
    ):
        result = await running.run(
            callers, FAULTS, seed=SEED, minutes=MINUTES, rate=RATE, report=lines.append
        )

    assert result.is_good, "\n".join([*lines, table(result, SEED)])
    assert result.kills > 0
