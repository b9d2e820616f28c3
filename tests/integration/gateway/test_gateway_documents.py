"""What the gateway publishes, and the processes that make it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest_asyncio

from libs.specs.paths import OPENAPI
from libs.specs.published import Published, of_operators, public
from tests.integration.gateway.desk import Desk, running_gateway, until
from tests.support.infrastructure import Environment
from tests.support.memory import resident_mebibytes
from tests.support.pace import pace

CONNECTIONS = 200


@pytest_asyncio.fixture
async def own(gateway_environment: Environment, tmp_path: Path) -> AsyncIterator[Desk]:
    """At a gateway that was not asked for anything."""
    async with running_gateway(gateway_environment, tmp_path) as desk:
        yield desk


def children_of(pid: int) -> list[int]:
    """The processes that it has started and that run."""
    listed = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for line in listed for child in line.split()]


async def bodies(desk: Desk, base_url: str, published: Published) -> dict[str, bytes]:
    """Those of all paths, asked for at once."""

    async def body(path: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=30 * pace())
        async with desk.session.get(base_url + path, timeout=timeout) as answer:
            assert answer.status == 200
            assert answer.content_type == published[path][0].partition(";")[0]
            return await answer.read()

    found = await asyncio.gather(*(body(path) for path in published))
    return dict(zip(published, found, strict=True))


async def test_they_are_made_when_they_are_asked_for_and_once(own: Desk) -> None:
    pid = own.stack.services["gateway"].pid
    before = children_of(pid)
    most = 0

    async def count() -> None:
        nonlocal most
        while True:
            most = max(most, len(children_of(pid)))
            await asyncio.sleep(0.01)

    counting = asyncio.create_task(count())
    first = await bodies(own, own.base_url, public())
    counting.cancel()

    assert before == []
    assert most == 1
    assert await bodies(own, own.base_url, public()) == first
    assert children_of(pid) == []


async def test_each_listener_shows_what_this_release_publishes(own: Desk) -> None:
    for base_url, published in (
        (own.base_url, public()),
        (own.stack.operator_url, of_operators()),
    ):
        expected = {path: zlib.decompress(content) for path, (_, content) in published.items()}
        assert await bodies(own, base_url, published) == expected


async def test_connections_that_stay_open_hold_no_document(own: Desk) -> None:
    await bodies(own, own.base_url, public())
    pid = own.stack.services["gateway"].pid
    before = resident_mebibytes(pid)
    unlimited = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=unlimited) as session:
        everybody = asyncio.Barrier(CONNECTIONS)

        async def read() -> int:
            async with session.get(own.base_url + OPENAPI) as answer:
                size = len(await answer.read())
                await everybody.wait()
            return size

        sizes = await asyncio.gather(*(read() for _ in range(CONNECTIONS)))
        grown = resident_mebibytes(pid) - before

    assert grown * 1024 * 1024 < sum(sizes) / 2


async def test_who_leaves_amid_a_document_is_no_error(own: Desk) -> None:
    await bodies(own, own.base_url, public())
    address = own.base_url.removeprefix("http://").split(":")
    for _ in range(5):
        _, writer = await asyncio.open_connection(*address)
        writer.write(f"GET {OPENAPI} HTTP/1.1\r\nHost: gateway\r\n\r\n".encode())
        await writer.drain()
        writer.transport.abort()
    await bodies(own, own.base_url, public())

    assert "error" not in own.stack.log("gateway").lower()


async def test_a_gateway_that_stops_takes_their_making_with_it(own: Desk) -> None:
    gateway = own.stack.services["gateway"]
    asked = asyncio.create_task(own.session.get(own.base_url + OPENAPI))

    async def is_being_made() -> bool:
        return children_of(gateway.pid) != []

    await until(is_being_made)
    [child] = children_of(gateway.pid)
    code = await gateway.stop()
    [outcome] = await asyncio.gather(asked, return_exceptions=True)

    assert code == 0
    assert isinstance(outcome, aiohttp.ClientResponse | aiohttp.ClientError)
    assert not Path(f"/proc/{child}").exists()
    assert "Traceback" not in gateway.log
