"""Load from wrk: one thread, keep-alive, requests that were signed beforehand, every answer checked."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.processor_time import ProcessorTime
from tests.benchmarks.signed_requests import write_requests

SCRIPT = Path(__file__).with_name("wrk.lua")
PROGRAM = "wrk"
FIRST_RATE = 5000.0
"""Requests a second to prepare for while it is not known how many are needed."""
RESERVE = 4.0
"""So many times the rate of the round before is prepared for: the machine may have been busy with something else."""


class LoadFailed(Exception):
    """Some answer was not the one that was asked for, so there is no figure."""


@dataclass
class Load:
    """Sends what `make` makes to `base_url` over so many connections; `expected` stands in every right answer."""

    base_url: str
    make: Callable[[], bytes]
    expected: str
    connections: int
    processor_time: ProcessorTime | None = None
    """Of whatever answers, measured while wrk runs."""
    answered: int = 0
    cpu_seconds: float = 0.0
    """Of wrk itself, reading the prepared requests included."""
    first_rate: float = FIRST_RATE
    _rate: float = field(init=False)

    def __post_init__(self) -> None:
        self._rate = self.first_rate

    async def rate(self, seconds: int) -> float:
        """Right answers a second."""
        return (await self._run(seconds))[0]

    async def median_milliseconds(self, seconds: int) -> float:
        """The time to an answer that half of the requests stay below."""
        return (await self._run(seconds))[1]

    @property
    def told(self) -> str:
        """Where the time went, and what the generator costs, for the figure's note."""
        generator = f"wrk {self.cpu_seconds / max(1, self.answered) * 1e6:.0f}"
        answering = self.processor_time.per(self.answered) if self.processor_time else ""
        return "µs of processor per answer: " + ", ".join(filter(None, (answering, generator)))

    async def _run(self, seconds: int) -> tuple[float, float]:
        """The rate, and the median time in milliseconds."""
        count = int(self._rate * RESERVE * seconds) + 10 * self.connections
        with tempfile.TemporaryDirectory(prefix="bankside-bench-") as folder:
            path = Path(folder) / "requests"
            await asyncio.to_thread(write_requests, path, self.make, count)
            if self.processor_time:
                self.processor_time.begin()
            output, cpu_seconds = await asyncio.to_thread(self._wrk, path, seconds)
            if self.processor_time:
                self.processor_time.end()
        result = _result(output)
        self.answered += int(result["good"])
        self.cpu_seconds += cpu_seconds
        self._rate = result["good"] / result["microseconds"] * 1e6
        return self._rate, result["p50"] / 1000

    def _wrk(self, requests: Path, seconds: int) -> tuple[str, float]:
        """What it printed, and the processor time that it used."""
        command = (
            *(PROGRAM, "--threads", "1", "--connections", str(self.connections)),
            *("--duration", f"{seconds}s", "--timeout", "20s", "--latency"),
            *("--script", str(SCRIPT), self.base_url, "--", str(requests), self.expected),
        )
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        if process.returncode != 0:
            raise LoadFailed(f"wrk ended with {process.returncode}: {text}")
        return text, usage.ru_utime + usage.ru_stime


def _result(output: str) -> dict[str, float]:
    """Raises LoadFailed."""
    line = next((line for line in output.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise LoadFailed(f"wrk told no result: {output}")
    result: dict[str, float] = json.loads(line.removeprefix("RESULT "))
    if result["exhausted"]:
        raise LoadFailed("wrk ran out of prepared requests")
    if result["bad"] or result["broken"] or not result["good"]:
        raise LoadFailed(f"not every answer was right: {output[output.index('RESULT') :]}")
    return result
