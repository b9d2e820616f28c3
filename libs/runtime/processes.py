"""Identities of processes, and processes that do not outlive the one that started them. Linux."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A pid with the moment it started (clock ticks since boot), so that a reused pid is not mistaken for it."""

    pid: int
    started_at: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process of this pid that runs now; None when there is none or it is only waiting to be reaped."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The second field is the command in parentheses and may itself hold spaces: count from its end.
        fields = stat[stat.rindex(")") + 2 :].split()
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    def is_running(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def signal_group(self, signum: signal.Signals) -> None:
        """Signal the process and, when it leads a group, all of its group. Nothing when it is gone."""
        if not self.is_running():
            return
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, signum)
            else:
                os.kill(self.pid, signum)


def end_processes(processes: Iterable[ProcessIdentity], patience_seconds: float = 10) -> None:
    """SIGTERM to all, SIGKILL to those that still run after `patience_seconds`. Blocks until they are gone."""
    remaining = [process for process in processes if process.is_running()]
    for signum, seconds in ((signal.SIGTERM, patience_seconds), (signal.SIGKILL, 5.0)):
        for process in remaining:
            process.signal_group(signum)
        deadline = time.monotonic() + seconds
        while remaining and time.monotonic() < deadline:
            time.sleep(0.02)
            remaining = [process for process in remaining if process.is_running()]


def die_with_parent(signum: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the child gets `signum` when the process that starts it is gone, however it went.

    The kernel ties this to the thread that forks, so start such children from the main thread.
    """
    parent = os.getpid()

    def arrange() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:  # it went between the fork and the line above
            os.kill(os.getpid(), signal.SIGKILL)

    return arrange
