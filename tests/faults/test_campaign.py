"""The beginning of `make faults` on the run's servers: processes, the bank and callers are broken, one by one."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.campaign.callers import new_callers
from tests.faults.campaign.faults import FAULTS
from tests.faults.campaign.replicas import running_fleet
from tests.faults.campaign.report import table
from tests.faults.campaign.run import run
from tests.support.infrastructure import Environment

MINUTES = 0.2
"""Eight faults or so, and a quarter of a minute before and after them."""
RATE = 6.0
"""Operations a second: other tests run beside it."""
SEED = int(os.environ.get("SEED") or 1)


async def test_some_of_its_faults_lose_and_double_nothing(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    lines: list[str] = []

    async with (
        running_fleet(fresh_environment, tmp_path) as fleet,
        new_callers(fleet, SEED) as callers,
    ):
        result = await run(
            callers, FAULTS, seed=SEED, minutes=MINUTES, rate=RATE, report=lines.append
        )

    assert result.is_good, "\n".join([*lines, table(result, SEED)])
    assert result.kills > 0
