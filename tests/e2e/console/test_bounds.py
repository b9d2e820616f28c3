"""Connections to the console that cost it something and bring nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from services.console.app import CONNECTIONS_PER_ADDRESS
from tests.e2e.console.hands import Seat
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOO_MANY = 8


async def test_idle_connections_make_room_for_an_operators_page(admin: Seat) -> None:
    address = urlsplit(admin.url)
    wanted = CONNECTIONS_PER_ADDRESS + TOO_MANY
    idle = [await asyncio.open_connection(address.hostname, address.port) for _ in range(wanted)]
    try:

        async def closed() -> bool:
            return (
                sum(reader.at_eof() or bool(reader.exception()) for reader, _ in idle) >= TOO_MANY
            )

        await eventually("the oldest are closed for the newest", closed)
        assert await admin.opened("/wires") == 200
    finally:
        for _, writer in idle:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
