"""Processes that share the port are replaced while requests come in."""

from __future__ import annotations

import asyncio
import os
import signal

import aiohttp

from tests.support.stack import Stack
from tests.support.waiting import eventually

CALLERS = 8
NOT_FOUND = 404
REPLACED_SECONDS = 60.0


async def test_processes_are_replaced_without_a_request_that_fails(gateway: Stack) -> None:
    process = gateway.services["gateway"]
    replaced = process.log.count("children_replaced")
    target = f"{gateway.base_url}/nowhere"
    statuses = set[int]()
    is_over = asyncio.Event()

    async def call(session: aiohttp.ClientSession) -> None:
        while not is_over.is_set():
            # The client does not send a POST a second time when its connection was closed.
            async with session.post(target) as response:
                statuses.add(response.status)

    async def is_replaced() -> bool:
        return process.log.count("children_replaced") > replaced

    async with (
        aiohttp.ClientSession() as keeping,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as new_each_time,
        asyncio.TaskGroup() as group,
    ):
        for session in (keeping, new_each_time) * CALLERS:
            group.create_task(call(session))
        os.kill(process.pid, signal.SIGHUP)
        await eventually("the processes are replaced", is_replaced, REPLACED_SECONDS)
        is_over.set()

    assert statuses == {NOT_FOUND}
