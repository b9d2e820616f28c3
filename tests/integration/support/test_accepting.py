"""Servers of tests leave no connection open that comes as they end."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.ports import LOOPBACK
from tests.integration.amqp_wire import wire_to
from tests.support.balancer import balancer
from tests.support.certificates import Authority, behind_tls
from tests.support.fake_core import FakeCore, serving
from tests.support.ports import free_ports
from tests.support.receivers import receiver
from tests.support.routes import route_to
from tests.support.tapped_amqp import tapped

TURNS = 12
"""Of the event loop: more than it takes from a connection's request to the one that is made for it."""

Server = Callable[[int, Path], AbstractAsyncContextManager[int]]
"""By the port of what is behind it, and a folder; its own port."""


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def a_receiver(_: int, __: Path) -> AsyncIterator[int]:
    async with receiver() as endpoint:
        yield endpoint.port


@asynccontextmanager
async def a_wire(behind: int, _: Path) -> AsyncIterator[int]:
    async with wire_to(f"amqp://user:password@{LOOPBACK}:{behind}") as wire:
        yield port_of(wire.url)


@asynccontextmanager
async def a_tap(behind: int, _: Path) -> AsyncIterator[int]:
    async with tapped(f"amqp://user:password@{LOOPBACK}:{behind}") as tap:
        yield port_of(tap.amqp_url)


@asynccontextmanager
async def a_route(behind: int, _: Path) -> AsyncIterator[int]:
    async with route_to(f"tcp://{LOOPBACK}:{behind}") as route:
        yield port_of(route.url)


@asynccontextmanager
async def a_balancer(behind: int, _: Path) -> AsyncIterator[int]:
    async with balancer(lambda: [behind]) as balancing:
        yield balancing.port


@asynccontextmanager
async def a_tls_server(behind: int, folder: Path) -> AsyncIterator[int]:
    async with behind_tls(f"http://{LOOPBACK}:{behind}", Authority(folder).identity()) as url:
        yield port_of(url)


@asynccontextmanager
async def a_tls_server_that_is_asked_first(behind: int, folder: Path) -> AsyncIterator[int]:
    url = f"postgresql://{LOOPBACK}:{behind}"
    async with behind_tls(url, Authority(folder).identity()) as opened:
        yield port_of(opened)


@asynccontextmanager
async def a_bank(_: int, __: Path) -> AsyncIterator[int]:
    [port] = free_ports(1)
    async with serving(FakeCore("token"), port):
        yield port


@pytest.mark.parametrize(
    "server",
    [
        a_receiver,
        a_wire,
        a_tap,
        a_route,
        a_balancer,
        a_tls_server,
        a_tls_server_that_is_asked_first,
        a_bank,
    ],
)
async def test_a_connection_that_comes_as_a_server_ends_is_closed(
    server: Server, tmp_path: Path
) -> None:
    with socket.create_server((LOOPBACK, 0), backlog=2 * TURNS) as behind:
        for turns in range(TURNS):
            async with server(behind.getsockname()[1], tmp_path) as port:
                come = socket.create_connection((LOOPBACK, port))  # its peer is this event loop
                for _ in range(turns):
                    await asyncio.sleep(0)
            come.close()

        gc.collect()  # a connection that was left open fails the test here
