from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest

from services.webhook_dispatcher.adapters import dialing


@pytest.fixture(scope="package", autouse=True)
def authorities_read_once() -> Iterator[None]:
    """Certificates of the authorities that the system trusts, which take 20 ms, are not read for each poster anew."""
    with patch.object(dialing, "system_context", cache(dialing.system_context)):
        yield
