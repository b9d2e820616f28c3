"""What the kernel does with a request that was written and whose exchange is over."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from aiohttp import web

from libs.providers.increase import capabilities as increase
from libs.providers.sandbox import capabilities as sandbox
from libs.providers.sessions import UNACKNOWLEDGED_SECONDS
from libs.providers.writing import Capabilities
from tests.unit.providers.conftest import Provider

EXCHANGE_SECONDS = 10.0
"""The longest time in which an attempt may write a request: `SEND_SECONDS`, `STEP_SECONDS`."""


async def begins(request: web.Request) -> web.StreamResponse:
    """An answer that does not end, so that its connection stays in use."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


def bound_of(response: aiohttp.ClientResponse) -> int:
    assert response.connection is not None
    assert response.connection.transport is not None
    used = response.connection.transport.get_extra_info("socket")
    milliseconds: int = used.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    return milliseconds


async def test_each_connection_gives_up_data_that_no_peer_acknowledges(
    provider: Provider, session: aiohttp.ClientSession
) -> None:
    provider.answers = [begins]

    async with session.get(provider.url) as one, session.post(provider.url, data=b"{}") as other:
        bounds = [bound_of(one), bound_of(other)]

    assert bounds == [UNACKNOWLEDGED_SECONDS * 1000] * 2


@pytest.mark.parametrize(
    "writes", [increase.WRITES, sandbox.CORE_WRITES, sandbox.IDENTITY_WRITES], ids=str
)
def test_our_own_sockets_deliver_nothing_later_than_a_send_may_arrive(
    writes: Capabilities,
) -> None:
    assert writes.longest_transit_seconds > EXCHANGE_SECONDS + UNACKNOWLEDGED_SECONDS
