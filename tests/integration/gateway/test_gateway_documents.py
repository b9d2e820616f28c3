"""What the gateway publishes, and the processes that make it."""

from __future__ import annotations

import asyncio
import functools
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from libs.specs.paths import ASYNCAPI, OPENAPI, REFERENCE
from libs.specs.published import Published, of_operators, public
from tests.integration.gateway.desk import Desk, desk_at, gateway_process, running_gateway, until
from tests.support.infrastructure import Environment
from tests.support.memory import resident_mebibytes
from tests.support.pace import pace
from tests.support.stack import Stack

CONNECTIONS = 200
of_callers = functools.cache(public)
for_operators = functools.cache(of_operators)


def children_of(pid: int) -> list[int]:
    """The processes that it has started and that run."""
    listed = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for line in listed for child in line.split()]


async def bodies(
    session: aiohttp.ClientSession, base_url: str, published: Published
) -> dict[str, bytes]:
    """Those of all paths, asked for at once."""

    async def body(path: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=30 * pace())
        async with session.get(base_url + path, timeout=timeout) as answer:
            assert answer.status == 200
            assert answer.content_type == published[path][0].partition(";")[0]
            return await answer.read()

    found = await asyncio.gather(*(body(path) for path in published))
    return dict(zip(published, found, strict=True))


@dataclass(frozen=True)
class Making:
    """The first requests for documents at a gateway.

    Args:
        before: its child processes before these requests.
        most: the largest number of its child processes at one moment during them.
        first: the bodies that were answered.
    """

    stack: Stack
    before: list[int]
    most: int
    first: dict[str, bytes]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def making(
    gateway_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Making]:
    """One gateway for the tests that do not end it."""
    folder = tmp_path_factory.mktemp("documents")
    async with (
        gateway_process(gateway_environment, folder) as stack,
        aiohttp.ClientSession() as session,
    ):
        pid = stack.services["gateway"].pid
        before = children_of(pid)
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, len(children_of(pid)))
                await asyncio.sleep(0.01)

        counting = asyncio.create_task(count())
        first = await bodies(session, stack.base_url, of_callers())
        counting.cancel()
        yield Making(stack, before, most, first)


@pytest_asyncio.fixture
async def shown(making: Making) -> AsyncIterator[Desk]:
    """At a gateway that has made its documents."""
    async with desk_at(making.stack) as desk:
        yield desk


async def test_documents_are_made_at_the_first_request_and_only_once(
    making: Making, shown: Desk
) -> None:
    again = await bodies(shown.session, shown.base_url, of_callers())

    assert making.before == []
    assert making.most == 1
    assert again == making.first
    assert children_of(making.stack.services["gateway"].pid) == []


async def test_each_listener_shows_what_this_release_publishes(shown: Desk) -> None:
    for base_url, published in (
        (shown.base_url, of_callers()),
        (shown.stack.operator_url, for_operators()),
    ):
        expected = {path: zlib.decompress(content) for path, (_, content) in published.items()}
        assert await bodies(shown.session, base_url, published) == expected


def test_the_documents_of_callers_have_no_path_of_operators() -> None:
    assert b"/operator/" not in zlib.decompress(of_callers()[OPENAPI][1])
    assert b"/operator/" in zlib.decompress(for_operators()[OPENAPI][1])


async def test_a_head_request_is_told_the_length_of_each(shown: Desk) -> None:
    lengths = {path: len(zlib.decompress(content)) for path, (_, content) in of_callers().items()}
    assert lengths.keys() >= {OPENAPI, ASYNCAPI, REFERENCE, f"{REFERENCE}/guides/quickstart"}
    for path, length in lengths.items():
        async with shown.session.head(shown.base_url + path) as answer:
            assert answer.status == 200
            assert int(answer.headers["Content-Length"]) == length


async def test_the_start_names_the_documents(shown: Desk) -> None:
    async with shown.session.get(f"{shown.base_url}/") as answer:
        start = await answer.json()
        length = int(answer.headers["Content-Length"])
    async with shown.session.head(f"{shown.base_url}/") as headers:
        told = headers.status, int(headers.headers["Content-Length"])

    assert (start["openapi"], start["asyncapi"]) == (OPENAPI, ASYNCAPI)
    assert start["documentation"] == REFERENCE
    assert (answer.status, told) == (200, (200, length))


async def test_connections_that_stay_open_hold_no_document(shown: Desk) -> None:
    pid = shown.stack.services["gateway"].pid
    before = resident_mebibytes(pid)
    unlimited = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=unlimited) as session:
        everybody = asyncio.Barrier(CONNECTIONS)

        async def read() -> int:
            async with session.get(shown.base_url + OPENAPI) as answer:
                size = len(await answer.read())
                await everybody.wait()
            return size

        sizes = await asyncio.gather(*(read() for _ in range(CONNECTIONS)))
        grown = resident_mebibytes(pid) - before

    assert grown * 1024 * 1024 < sum(sizes) / 2


async def test_who_leaves_amid_a_document_is_no_error(shown: Desk) -> None:
    address = shown.base_url.removeprefix("http://").split(":")
    for _ in range(5):
        _, writer = await asyncio.open_connection(*address)
        writer.write(f"GET {OPENAPI} HTTP/1.1\r\nHost: gateway\r\n\r\n".encode())
        await writer.drain()
        writer.transport.abort()
    await bodies(shown.session, shown.base_url, of_callers())

    assert "error" not in shown.stack.log("gateway").lower()


async def test_a_gateway_that_stops_takes_their_making_with_it(
    gateway_environment: Environment, tmp_path: Path
) -> None:
    async with running_gateway(gateway_environment, tmp_path) as own:
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
