"""A client at a gateway double, and what it sends and reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

import aiohttp

from libs.client.client import Client
from libs.client.transport import Transport
from libs.contracts.customers import UpdatePerson
from tests.unit.client.answering import KEY, Gateway

BALANCE = {
    "account_id": "acc_1",
    "account_number": "000000000001",
    "available_balance": {"amount": Decimal("1234567890123456.78"), "currency": "USD"},
    "held_balance": {"amount": Decimal("0.10"), "currency": "USD"},
    "total_balance": {"amount": Decimal("1234567890123456.88"), "currency": "USD"},
    "system_timestamp": "2026-01-31T12:00:00.123456Z",
}
UPDATE = UpdatePerson.model_validate({"person_id": "p 1", "middle_name": None})


@asynccontextmanager
async def client_of(server: Gateway) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(Transport(server.base_url, KEY, session), attempts=3)
