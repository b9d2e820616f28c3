"""One stack at the fake of Increase, whichever bank the run's other stacks have.

On an environment of its own: rows of one bank are nothing that another bank knows.
"""

from __future__ import annotations

import pytest

from deploy.local.banks import INCREASE_FAKE
from tests.e2e.wires.conftest import onboarded, sender
from tests.support.live import deployment, own_environment

__all__ = ["deployment", "onboarded", "own_environment", "sender"]


@pytest.fixture(scope="package")
def chosen_bank() -> str:
    return INCREASE_FAKE
