"""How the console ends: as a load balancer needs it."""

from __future__ import annotations

import asyncio

from aiohttp import ClientSession

from deploy.local.ports import LOOPBACK
from libs.runtime.process import Process
from services.console.app import serve
from tests.support.pace import pace
from tests.support.ports import free_ports
from tests.unit.console.browser import settings

UNKNOWN = "/static/nothing"
"""Is answered without the gateway and without a session."""


async def test_a_console_that_ends_goes_on_answering_and_closes_each_connection() -> None:
    [port] = free_ports(1)
    configured = settings(
        port=port, public_url=f"http://{LOOPBACK}:{port}", drain_seconds=0.5 * pace()
    )
    listening, told_to_end = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with serve(configured, Process("console")):
            listening.set()
            await told_to_end.wait()

    console = asyncio.create_task(live())
    await listening.wait()
    async with ClientSession() as session:

        async def connection_after_answer() -> str:
            async with session.get(f"http://{LOOPBACK}:{port}{UNKNOWN}") as response:
                assert response.status == 404
                return response.headers.get("Connection", "keep-alive")

        before = await connection_after_answer()
        told_to_end.set()
        await asyncio.sleep(0)

        after = [await connection_after_answer() for _ in range(3)]
        was_draining = not console.done()
        await console

    assert before == "keep-alive"
    assert after == ["close"] * 3
    assert was_draining
