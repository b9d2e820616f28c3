"""What a connection by TLS is written arrives whole, however slowly its peer reads."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from deploy.local.ports import LOOPBACK
from libs.runtime.tls_writing import PIECE_BYTES, PiecewiseWriting
from libs.tls import client_context
from tests.support.certificates import Authority
from tests.support.pace import pace

SIZES = (1, PIECE_BYTES, PIECE_BYTES + 1, 16 * 2**20, 10)


class Writes(asyncio.Protocol):
    """Writes all of it and closes the connection at once."""

    def __init__(self) -> None:
        self.written = [random.randbytes(size) for size in SIZES]
        self.paused_at: list[int] = []
        self.resumed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.writelines(self.written[:3])
        for data in self.written[3:]:
            self._transport.write(data)
        self._transport.close()

    def pause_writing(self) -> None:
        self.paused_at.append(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self.resumed += 1


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_written_arrives_although_it_is_closed_and_not_read_at_once(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, bytes]], bytes]
) -> None:
    authority, protocol = Authority(tmp_path), Writes()

    async def arriving() -> bytes:
        server = await asyncio.get_running_loop().create_server(
            lambda: PiecewiseWriting(protocol), LOOPBACK, 0, ssl=authority.identity().context()
        )
        port = server.sockets[0].getsockname()[1]
        async with server, asyncio.timeout(20 * pace()):
            reader, writer = await asyncio.open_connection(
                "localhost", port, ssl=client_context(authority.file)
            )
            try:
                return await reader.read()
            finally:
                writer.transport.abort()

    arrived = run(arriving())

    assert arrived == b"".join(protocol.written)
    assert len(protocol.paused_at) == protocol.resumed == 1
    assert protocol.paused_at[0] > 2**20, "what does not fit below is seen"
