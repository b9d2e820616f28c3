"""A provider of our own: a real HTTP server on a free port whose next answers each test decides."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from libs.providers.circuit import Circuit
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from tests.support.pace import pace

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Provider:
    """Answers requests with `answers`, one after the other, the last for ever; remembers what came."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    seen: list[tuple[str, str, bytes, dict[str, str]]] = field(default_factory=list)

    @property
    def requests(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.seen]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((request.method, request.raw_path, body, dict(request.headers)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def says(status: int, text: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="application/json")

    return answer


def refuses(status: int, code: str) -> Answer:
    return says(status, f'{{"error": {{"code": "{code}", "message": "No, said the bank."}}}}')


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def drops(request: web.Request) -> web.StreamResponse:
    """Accepts the request and closes the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def soon(seconds: float = 5.0) -> float:
    return time.time() + seconds


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    scripted = Provider()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", scripted.handle)
    runner = web.AppRunner(application, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}/bank"
    yield scripted
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(20) as opened:
        yield opened


@pytest.fixture
def client(provider: Provider, session: aiohttp.ClientSession) -> ProviderClient:
    return ProviderClient(
        "bank",
        provider.url,
        "token",
        session,
        timeout_seconds=0.3 * pace(),
        circuit=Circuit(failures_to_open=100),
    )
