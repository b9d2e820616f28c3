"""The client of Increase in front of a scripted server, and objects as Increase answers with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from increase.types import WireTransfer

from libs.providers.circuit import Circuit
from libs.providers.increase.client import IncreaseClient
from tests.support.pace import pace
from tests.unit.providers.conftest import Answer, Provider, says

API_KEY = "a_key_of_increase_that_is_secret"


@pytest.fixture
def increase(provider: Provider, session: aiohttp.ClientSession) -> IncreaseClient:
    return IncreaseClient(
        "bank",
        provider.url,
        API_KEY,
        session,
        timeout_seconds=0.5 * pace(),
        circuit=Circuit(failures_to_open=100),
    )


def wire_transfer(key: UUID | None, **changed: Any) -> dict[str, Any]:
    """A wire as Increase shows it; checked against the SDK's own type."""
    wire = {
        "id": "wire_transfer_1",
        "account_id": "account_1",
        "account_number": "123456789",
        "amount": 1050,
        "created_at": "2026-03-02T15:00:00Z",
        "currency": "USD",
        "external_account_id": "external_account_1",
        "idempotency_key": None if key is None else str(key),
        "network": "wire",
        "routing_number": "101050001",
        "status": "submitted",
        "type": "wire_transfer",
    } | changed
    WireTransfer.model_validate(wire)
    return wire


def shows(body: object, status: int = 200) -> Answer:
    return says(status, json.dumps(body))


def lists(rows: Sequence[object], following: str | None = None) -> Answer:
    return shows({"data": rows, "next_cursor": following})


def refuses(status: int, kind: str, **more: Any) -> Answer:
    return shows(
        {"type": kind, "title": "No.", "detail": "Said the bank.", "status": status} | more, status
    )
