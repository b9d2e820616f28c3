"""What a peer has taken is known from its kernel's acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from deploy.local.ports import LOOPBACK
from libs.runtime.acknowledged_bytes import acknowledged_bytes
from tests.support.waiting import eventually


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_arrived_is_counted_until_the_connection_is_closed(
    run: Callable[[Coroutine[Any, Any, tuple[int, int]]], tuple[int, int]],
) -> None:
    async def counted() -> tuple[int, int]:
        taken = asyncio.Event()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionResetError):
                await reader.read()
            writer.close()
            taken.set()

        server = await asyncio.start_server(take, LOOPBACK, 0)
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            connected = writer.get_extra_info("socket")
            before = acknowledged_bytes(connected)

            async def has_grown() -> bool:
                return acknowledged_bytes(connected) >= before + 1000

            writer.write(bytes(1000))
            await eventually("it is acknowledged", has_grown)
            while_open = acknowledged_bytes(connected) - before
            writer.transport.abort()
            await taken.wait()
            return while_open, acknowledged_bytes(connected)

    while_open, afterwards = run(counted())

    assert while_open == 1000
    assert afterwards == 0
