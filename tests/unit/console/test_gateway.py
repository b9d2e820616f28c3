"""How the console asks the gateway, over HTTP."""

from __future__ import annotations

import time

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from libs.contracts.errors import NotFound, TimestampOutOfWindow
from libs.contracts.operating.overview import GET_OVERVIEW, GetOverview
from libs.contracts.operating.sessions import BROWSER_HEADER, SESSION_HEADER
from services.console.failures import sentence
from services.console.gateway import SignedGateway
from tests.unit.console import samples
from tests.unit.console.browser import console, settings
from tests.unit.console.gateway_double import TOKEN


async def test_a_clock_that_the_gateway_refuses_is_not_taken_for_a_wrong_key() -> None:
    async def refuse(_: web.Request) -> web.Response:
        problem = {
            "code": TimestampOutOfWindow.code,
            "detail": "The timestamp is too far from the server's clock.",
            "server_time": int(time.time()) - 600,
        }
        return web.json_response(problem, status=401, content_type="application/problem+json")

    application = web.Application()
    application.router.add_get(GET_OVERVIEW.path or "", refuse)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        url = str(server.make_url("/")).rstrip("/")
        gateway = SignedGateway(url, settings().credentials(), session, 10.0)

        with capture_logs() as logs, pytest.raises(TimestampOutOfWindow) as refused:
            await gateway.of(None).ask(GET_OVERVIEW, GetOverview())

    assert "clock" in sentence(refused.value)
    assert "BANKSIDE_CONSOLE_OPERATOR_KEY" not in sentence(refused.value)
    [line] = [line for line in logs if line["event"] == "clock_refused"]
    assert 600 <= line["ahead_of_gateway_seconds"] <= 605


async def test_a_request_names_the_session_and_where_the_browser_is() -> None:
    asked: list[tuple[str | None, str | None]] = []

    async def refuse(request: web.Request) -> web.Response:
        asked.append((request.headers.get(SESSION_HEADER), request.headers.get(BROWSER_HEADER)))
        return web.json_response({"code": NotFound.code}, status=404)

    application = web.Application()
    application.router.add_get(GET_OVERVIEW.path or "", refuse)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        url = str(server.make_url("/")).rstrip("/")
        gateway = SignedGateway(url, settings().credentials(), session, 10.0)

        for of in (gateway.of(TOKEN, "203.0.113.9"), gateway.of(None)):
            with pytest.raises(NotFound):
                await of.ask(GET_OVERVIEW, GetOverview())

    assert asked == [(TOKEN, "203.0.113.9"), (None, None)]


async def test_the_browsers_address_goes_by_the_proxies_that_are_trusted() -> None:
    double = samples.gateway()
    async with console(double, trusted_proxies="127.0.0.1") as browser:
        await browser.get("/wires", {"X-Forwarded-For": "203.0.113.9"})

    assert double.browsers == ["203.0.113.9"]
