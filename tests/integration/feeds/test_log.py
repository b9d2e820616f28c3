"""A feed that stands still is logged with a trace, unless an outage explains it."""

from __future__ import annotations

from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.persistence.engine import Database
from tests.integration.feeds.following import Provider, followed, stands_still
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("error", "has_trace"),
    [
        (ProviderTimeout(), False),
        (ProviderError(), True),
        (Unavailable(), False),
        (LookupError(), True),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_page_that_is_not_fetched_is_logged_with_a_trace_unless_an_outage_explains_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: Exception, has_trace: bool
) -> None:
    async def fetch(*_: object) -> NoReturn:
        raise error

    provider = Provider()
    monkeypatch.setattr(provider, "fetch", fetch)

    with capture_logs() as logs:
        async with followed(database, provider):
            await eventually("it stands still", lambda: stands_still(database))

    line = next(line for line in logs if line["event"] == "feed_stands_still")
    assert line["cause"] == type(error).__name__
    assert (line["exc_info"] is not None) == has_trace
