"""A caller who holds what the gateway has: `python -m tests.benchmarks.hostile HOST PORT SECONDS SIGNATURES_A_SECOND`.

A process of its own, so that its work does not delay the measuring one. It ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable

IDLE_CONNECTIONS = 3_000
HALF_BODIES = 100
SLOW_HEADERS = 100
FORWARDED_A_SECOND = 5
DRIP_SECONDS = 2.0
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
TARGET = b"/partner/reseller/accounts"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def credentials() -> bytes:
    """Of the right form, with a key that does not exist."""
    return (
        f"X-API-SUBSCRIPTION-KEY: sub_{os.urandom(12).hex()}\r\nX-API-TIMESTAMP: {int(time.time())}\r\n"
        f"X-API-NONCE: {os.urandom(16).hex()}\r\nX-API-SIGNATURE: {os.urandom(32).hex()}\r\n"
    ).encode()


def request(more: bytes = b"") -> bytes:
    return b"GET " + TARGET + b" HTTP/1.1\r\nHost: gateway\r\n" + credentials() + more + b"\r\n"


FORWARDED = b"".join(b"X-Forwarded-For: " + b"203.0.113.7, " * 600 + b"\r\n" for _ in range(100))
HALF_BODY = (
    b"POST /partner/reseller/customers HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100000\r\n"
)


class Hostile:
    def __init__(self, host: str, port: int, signatures_per_second: float) -> None:
        self._host = host
        self._port = port
        self._signature_seconds = 1 / signatures_per_second

    async def work(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(IDLE_CONNECTIONS // 100):
                group.create_task(self._hold(100, b"", None))
            group.create_task(self._hold(HALF_BODIES, HALF_BODY, b"\r\n{"))
            group.create_task(self._hold(SLOW_HEADERS, b"GET / HTTP/1.1\r\nX-Slow: ", b"a"))
            group.create_task(self._repeat(1 / FORWARDED_A_SECOND, lambda: request(FORWARDED)))
            group.create_task(self._repeat(self._signature_seconds, request))

    async def _hold(self, count: int, sent: bytes, drip: bytes | None) -> None:
        """Keep so many connections open, each opened anew when it is closed."""
        held: list[Streams] = []
        while True:
            held = [streams for streams in held if not streams[0].at_eof()]
            with contextlib.suppress(OSError, TimeoutError):
                while len(held) < count:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        opened = await asyncio.open_connection(self._host, self._port)
                    opened[1].write(sent + (credentials() + b"\r\n" if sent == HALF_BODY else b""))
                    held.append(opened)
            await asyncio.sleep(DRIP_SECONDS)
            for _, writer in held:
                if drip is not None and not writer.is_closing():
                    writer.write(drip)

    async def _repeat(self, seconds: float, make: Callable[[], bytes]) -> None:
        """Send a request in each period, answered or not."""
        under_way: set[asyncio.Task[None]] = set()
        while True:
            task = asyncio.create_task(self._send(make()))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await asyncio.sleep(seconds)

    async def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                try:
                    writer.write(data)
                    await reader.read(4096)
                finally:
                    writer.close()


async def for_seconds(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work()


if __name__ == "__main__":
    address, port, seconds, rate = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    asyncio.run(for_seconds(Hostile(address, int(port), float(rate)).work, float(seconds)))
