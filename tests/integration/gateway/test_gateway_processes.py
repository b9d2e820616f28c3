"""Processes that share the port are replaced while requests come in."""

from __future__ import annotations

import asyncio
import os
import re
import signal

import aiohttp
import pytest
import structlog

from libs.runtime.supervision import ChildSpec, Supervisor
from services.gateway.processes import replace_for_ever
from services.gateway.settings import Settings
from tests.support.pace import pace
from tests.support.stack import Stack
from tests.support.waiting import eventually

CALLERS = 8
NOT_FOUND = 404
REPLACED_SECONDS = 60.0
PAUSE_SECONDS = 0.03
"""Between two requests of a caller: the processes that start have to be met by requests, not kept from starting."""


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
            await asyncio.sleep(PAUSE_SECONDS)

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


async def test_a_process_that_has_no_others_to_replace_goes_on_after_sighup(gateway: Stack) -> None:
    process = gateway.services["gateway"]
    children = [int(pid) for pid in re.findall(r"pid (\d+)", process.log)]
    ignored, died = process.log.count("sighup_ignored"), process.log.count('"died"')

    os.kill(children[-1], signal.SIGHUP)

    async def is_over() -> bool:
        return process.log.count("sighup_ignored") > ignored or process.log.count('"died"') > died

    await eventually("the signal has had its effect", is_over)
    assert process.log.count('"died"') == died


async def test_without_admin_ports_no_process_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, renewed = asyncio.Event(), list[str]()
    monkeypatch.setattr(Settings, "examine", lambda: (None, []))
    with structlog.testing.capture_logs() as logs:

        async def is_over() -> bool:
            return any("replaced" in line["event"] for line in logs)

        async with Supervisor() as supervisor:
            supervisor.start(ChildSpec("gateway-0", ("sleep", "60"), env=os.environ))
            await supervisor.until_ready(["gateway-0"], 10 * pace())
            before = supervisor.children["gateway-0"].identity
            replacing = asyncio.create_task(replace_for_ever(supervisor, wanted, renewed.append))

            wanted.set()
            await eventually("the answer is logged", is_over)

            assert (supervisor.children["gateway-0"].identity, renewed) == (before, [])
            replacing.cancel()
            await asyncio.wait({replacing})
    assert [line["event"] for line in logs] == ["children_not_replaced"]
