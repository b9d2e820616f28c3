"""Named crash points: `BANKSIDE_CRASH_AT=<name>` makes the process kill itself there, as `kill -9` would.

They let a test, or an operator rehearsing, prove that a crash at any point loses and doubles nothing.
"""

from __future__ import annotations

import os
import signal

_armed: str = ""


def arm(name: str) -> None:
    """Choose the crash point of this process; an empty name chooses none."""
    global _armed
    _armed = name


def crash_point(name: str) -> None:
    """Do nothing, or die at once when this point was chosen."""
    if name == _armed:
        os.kill(os.getpid(), signal.SIGKILL)
