"""Readiness checks of other processes, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PROBE_SECONDS = 3.0


def http_ready(host: str, port: int, path: str = "/ready") -> Callable[[], Awaitable[bool]]:
    """A check that passes when GET `path` answers 200 within 3 s. Raises OSError or TimeoutError."""
    request = f"GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()

    async def check() -> bool:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request)
                await writer.drain()
                status_line = await reader.readline()
            finally:
                writer.close()
        return status_line.split(b" ", 2)[1:2] == [b"200"]

    return check
