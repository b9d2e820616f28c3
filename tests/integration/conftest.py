"""Parts of services that run inside a test log one plain line an event, without the local variables of every frame."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> Iterator[None]:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.KeyValueRenderer(
                key_order=["level", "event"], repr_native_str=False
            ),
        ],
        cache_logger_on_first_use=False,
    )
    yield
    structlog.reset_defaults()
