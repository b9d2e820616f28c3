"""A process whose clock is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def clock_off_by(seconds: float) -> Iterator[None]:
    """The clock of this process is wrong during the body."""
    right = time.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + seconds)
        yield
