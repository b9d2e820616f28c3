"""Fixtures of the tests of the Python client."""

from __future__ import annotations

import pytest

from bankside_client import exchange
from bankside_client.backoff import Backoff


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "RETRIES", Backoff(0.001, 30.0))


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
