"""Fault tests whose bounds hold on a machine that they have to themselves: `make faults`."""

from __future__ import annotations

import os

import pytest

NEEDS_THE_MACHINE = pytest.mark.skipif(
    "BANKSIDE_LONG_FAULTS" not in os.environ,
    reason="has recovery times as bounds, and so needs the machine to itself: make faults",
)
