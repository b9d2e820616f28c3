"""One stack at the fake of Increase, whichever bank the run's other stacks have."""

from __future__ import annotations

import pytest

from deploy.local.banks import INCREASE_FAKE
from tests.e2e.wires.conftest import onboarded, sender

__all__ = ["onboarded", "sender"]


@pytest.fixture(scope="package")
def chosen_bank() -> str:
    return INCREASE_FAKE
