"""Handshakes of TLS that are under way: bounded for each address and in all, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.ports import LOOPBACK
from libs.runtime.accepting import accepting, bound_at
from libs.runtime.handshakes import Handshakes
from libs.runtime.process import Process
from libs.tls import client_context
from tests.support.certificates import Authority
from tests.support.pace import pace


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"hello")


@asynccontextmanager
async def shaking_hands(
    authority: Authority, *, per_address: int = 100, in_all: int = 100, seconds: float = 60.0
) -> AsyncIterator[int]:
    """The port at which connections shake hands."""
    handshakes = Handshakes(
        authority.identity().context(),
        lambda peer: peer,
        per_address=per_address,
        in_all=in_all,
        seconds=seconds * pace(),
    )
    [listening] = await bound_at(LOOPBACK, 0)
    async with accepting(Process("tests"), [listening], Greeter, handshakes):
        yield listening.getsockname()[1]
    await handshakes.close()


@pytest.mark.parametrize("bounds", [{"per_address": 2}, {"in_all": 2}])
async def test_the_oldest_handshake_makes_room_for_a_new_one(
    tmp_path: Path, bounds: dict[str, int]
) -> None:
    authority = Authority(tmp_path)
    async with shaking_hands(authority, **bounds) as port, asyncio.timeout(20 * pace()):
        silent = [await asyncio.open_connection(LOOPBACK, port) for _ in range(3)]
        ended = await silent[0][0].read()
        reader, writer = await asyncio.open_connection(
            "localhost", port, ssl=client_context(authority.file)
        )
        said = await reader.readexactly(5)

        assert (ended, said) == (b"", b"hello")
        assert not silent[2][0].at_eof()
        for _, each in (*silent, (reader, writer)):
            each.transport.abort()


async def test_a_handshake_that_does_not_come_to_an_end_is_given_up(tmp_path: Path) -> None:
    async with (
        shaking_hands(Authority(tmp_path), seconds=0.2) as port,
        asyncio.timeout(20 * pace()),
    ):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        ended = await reader.read()
        writer.close()

    assert ended == b""
