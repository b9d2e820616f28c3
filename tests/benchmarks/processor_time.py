"""Where the processor time of a round went: by part, per answer. It moves less than rates do when others use the
machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.servers import Servers
from tests.support.stack import Stack

_TICKS = os.sysconf("SC_CLK_TCK")


def parts_of(stack: Stack, servers: Servers) -> dict[str, int]:
    """The processes that answer, by name. What they start counts with them."""
    services = {name: process.pid for name, process in stack.services.items()}
    return {**services, **servers.pids()}


@dataclass
class ProcessorTime:
    """Adds up what the parts use between `begin` and `end`."""

    parts: Mapping[str, int]
    used: dict[str, float] = field(default_factory=dict)
    _before: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        self._before = self._now()

    def end(self) -> None:
        for part, seconds in self._now().items():
            self.used[part] = self.used.get(part, 0.0) + seconds - self._before[part]

    def per(self, count: int) -> str:
        """Microseconds for each of `count`, of the parts that count."""
        shares = {part: seconds / max(1, count) * 1e6 for part, seconds in self.used.items()}
        whole = sum(shares.values())
        return ", ".join(
            f"{part} {share:.0f}" for part, share in shares.items() if share > whole / 50
        )

    def _now(self) -> dict[str, float]:
        children: dict[int, list[int]] = {}
        ticks: dict[int, int] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            pid = int(folder.name)
            children.setdefault(int(fields[1]), []).append(pid)
            # With those of its children that have ended.
            ticks[pid] = sum(map(int, fields[11:15]))

        def total(pid: int) -> int:
            return ticks.get(pid, 0) + sum(total(child) for child in children.get(pid, ()))

        return {part: total(pid) / _TICKS for part, pid in self.parts.items()}
