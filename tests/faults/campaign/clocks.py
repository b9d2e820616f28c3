"""Steps of the clock of one process, by libfaketime; its monotonic clock goes on."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from deploy.local.faketime import find_faketime
from tests.faults.campaign.faults import Fault
from tests.support.launching import launched
from tests.support.stack import ServiceProcess


class ClockSteps(Fault):
    """The clock of a process steps back or forth while it works, twice, and is right again in its successor.

    A gateway's stays within the 300 s in which it takes timestamps.
    """

    name, weight = "clock of a process steps", 0.7
    MOST_SECONDS, MOST_OF_A_GATEWAY = 3600, 200
    SECONDS = (2.0, 6.0)

    async def strike(self) -> None:
        library = find_faketime()
        assert library is not None, "`make faults` installs libfaketime"
        [replica] = self._some(self._ours, 1)
        self._touching([replica])
        most = self.MOST_OF_A_GATEWAY if replica.service == "gateway" else self.MOST_SECONDS
        steps = [self.ground.random.randint(-most, most) for _ in range(2)]
        self.detail += f" by {', '.join(f'{step:+} s' for step in steps)}"
        usual = replica.process
        # A new interpreter: the library is loaded at its start.
        stepped = ServiceProcess(usual.module, usual.settings, usual.log_path, launched)
        with tempfile.TemporaryDirectory(prefix="bankside-clock-") as folder:
            clock = Path(folder) / "clock"
            clock.write_text("+0")
            await replica.replace(
                stepped,
                LD_PRELOAD=str(library),
                FAKETIME_TIMESTAMP_FILE=str(clock),
                FAKETIME_CACHE_DURATION="1",
                DONT_FAKE_MONOTONIC="1",
            )
            for step in steps:
                clock.write_text(f"{step:+}")
                await asyncio.sleep(self.ground.random.uniform(*self.SECONDS))
            await replica.replace(usual)
