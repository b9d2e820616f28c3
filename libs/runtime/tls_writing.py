"""Connections by TLS whose transport shows what the peer has not taken.

A TLS transport of asyncio, and of uvloop, encrypts all of a write and gives it to the transport below, of which its own
`get_write_buffer_size` and its protocol's `pause_writing` know nothing: an answer of any size counts as taken. So it is
given no more than it takes to have the next piece at hand, and the rest waits here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

PIECE_BYTES = 16 * 1024
"""What the TLS transport is given at once, one record, and what it may keep back before it pauses its protocol."""


class PiecewiseWriting(asyncio.Protocol):
    """Around the protocol of a connection by TLS."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        self._transport: _PiecewiseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = _PiecewiseTransport(cast(asyncio.Transport, transport), self._protocol)
        self._protocol.connection_made(self._transport)

    def data_received(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._transport.pause()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._transport.drop()
        self._protocol.connection_lost(error)


class _PiecewiseTransport(asyncio.Transport):
    """What the protocol takes for its transport: as much of one as aiohttp calls."""

    def __init__(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        super().__init__()
        transport.set_write_buffer_limits(high=PIECE_BYTES)
        self._transport = transport
        self._protocol = protocol
        self._rest: deque[memoryview] = deque()
        self._rest_bytes = 0
        self._is_full = False
        """The TLS transport wants no more at present."""
        self._has_paused = False
        """The protocol."""
        self._is_closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if len(data) <= PIECE_BYTES and not self._rest and not self._is_full:
            self._transport.write(data)
        else:
            self.writelines((data,))

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        for part in parts:
            self._rest.append(memoryview(part))
            self._rest_bytes += len(part)
        self._write_rest()
        if self._rest and not self._has_paused:
            self._has_paused = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Changes nothing: the protocol is paused as soon as anything waits here, and until nothing does."""

    def get_write_buffer_size(self) -> int:
        return self._rest_bytes + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        """Once everything is written, as transports do."""
        self._is_closing = True
        if not self._rest:
            self._transport.close()

    def abort(self) -> None:
        self.drop()
        self._transport.abort()

    def pause(self) -> None:
        self._is_full = True

    def resume(self) -> None:
        self._is_full = False
        self._write_rest()
        if self._rest:
            return
        if self._is_closing:
            self._transport.close()
        if self._has_paused:
            self._has_paused = False
            self._protocol.resume_writing()

    def drop(self) -> None:
        """The rest is not written any more."""
        self._rest.clear()
        self._rest_bytes = 0

    def _write_rest(self) -> None:
        while self._rest and not self._is_full and not self._transport.is_closing():
            first = self._rest[0]
            piece, rest = first[:PIECE_BYTES], first[PIECE_BYTES:]
            if len(rest):
                self._rest[0] = rest
            else:
                self._rest.popleft()
            self._rest_bytes -= len(piece)
            self._transport.write(piece)
