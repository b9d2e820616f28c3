"""Fixtures of the tests of the Python client."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest

from bankside_client import exchange
from bankside_client.backoff import Backoff


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "RETRIES", Backoff(0.001, 30.0))


@pytest.fixture(scope="package", autouse=True)
def authorities_read_once() -> Iterator[None]:
    """Certificates of the authorities that httpx trusts, which take 30 ms, are not read for each client anew."""
    with patch.object(ssl, "create_default_context", cache(ssl.create_default_context)):
        yield


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
