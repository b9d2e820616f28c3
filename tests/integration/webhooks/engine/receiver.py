"""Callback URLs of the test's own: a real HTTP server that remembers what it is sent."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from deploy.local.ports import LOOPBACK


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers 200; a path in `statuses` with that status, one in `hanging` not before `let_go`."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    at_once: Counter[str] = field(default_factory=Counter)
    most_at_once: Counter[str] = field(default_factory=Counter)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        path, body = request.path, await request.read()
        self.received.append(Received(path, request.headers, body))
        self.at_once[path] += 1
        self.most_at_once[path] = max(self.most_at_once[path], self.at_once[path])
        try:
            if path in self.hanging:
                await self.let_go.wait()
        finally:
            self.at_once[path] -= 1
        return web.Response(status=self.statuses.get(path, 200), headers=self.headers)

    def of(self, path: str) -> list[Received]:
        return [received for received in self.received if received.path == path]

    def ids_of(self, path: str) -> list[str]:
        return [received.event_id for received in self.of(path)]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/{path:.*}", receiver.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    receiver.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        await runner.cleanup()
