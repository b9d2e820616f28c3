"""The span of an exchange with a provider, and what the provider is told of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from libs import tracing
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.client import IncreaseClient
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from libs.runtime import span_export
from libs.runtime.tracing import traced
from tests.support.collector import Collector, Span, collecting
from tests.support.pace import pace
from tests.support.waiting import eventually

ACCOUNT = "canary-account-4711"
Reading = Callable[[str, aiohttp.ClientSession, float], Awaitable[object]]


async def at_sandbox(url: str, session: aiohttp.ClientSession, deadline: float) -> object:
    client = ProviderClient("core", url, "token", session)
    path = f"/accounts/{ACCOUNT}"
    return await client.read("get_account", path, [("name", "canary")], deadline=deadline)


async def at_increase(url: str, session: aiohttp.ClientSession, deadline: float) -> object:
    client = IncreaseClient("core", url, "key", session)
    return await client.read(
        "get_account", lambda sdk: sdk.accounts.retrieve(ACCOUNT), deadline=deadline
    )


@asynccontextmanager
async def refusing() -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A provider that knows no account, and what came to it."""
    came: list[web.Request] = []

    async def refuse(request: web.Request) -> web.Response:
        came.append(request)
        return web.json_response(
            {
                "error": {"code": "not_found", "message": "canary"},
                "type": "object_not_found_error",
                "title": "canary",
                "detail": None,
                "status": 404,
                "resource": "accounts",
            },
            status=404,
        )

    application = web.Application()
    application.router.add_get("/{rest:.*}", refuse)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", came
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("read", "is_told"), [(at_sandbox, True), (at_increase, False)])
async def test_an_exchange_is_a_span_that_only_the_sandbox_is_told_of(
    read: Reading, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_export, "TOGETHER_SECONDS", 0.01)
    monkeypatch.setattr(span_export, "CLOSING_SECONDS", 0.01)
    async with collecting() as collector, open_session(4) as session, refusing() as (url, came):
        with traced("payments", collector.url):
            with tracing.trace("GET /accounts", {}, None, None), pytest.raises(ProviderRefusal):
                await read(url, session, time.time() + 5 * pace())
            span = await exchanged(collector)

    sent = came[0].headers.get("traceparent")
    assert sent == (f"00-{span.trace_id}-{span.span_id}-03" if is_told else None)
    assert span.name == "core get_account"
    assert span.is_error
    assert span.attributes == {
        "bankside.provider": "core",
        "bankside.provider_operation": "get_account",
        "bankside.outcome": "refused",
        "error.type": "404",
        "http.request.method": "GET",
        "http.response.status_code": 404,
        "server.address": "127.0.0.1",
        "server.port": int(url.rpartition(":")[2]),
    }
    assert b"canary" not in collector.heard


async def test_untraced_exchanges_tell_the_provider_nothing() -> None:
    async with open_session(4) as session, refusing() as (url, came):
        with pytest.raises(ProviderRefusal):
            await at_sandbox(url, session, time.time() + 5 * pace())

    assert "traceparent" not in came[0].headers


async def exchanged(collector: Collector) -> Span:
    async def came() -> Span | None:
        return next((span for span in collector.spans if span.name != "GET /accounts"), None)

    return await eventually("the exchange is exported", came)
