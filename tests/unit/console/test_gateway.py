"""How the console asks the gateway, over HTTP."""

from __future__ import annotations

import time

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from libs.contracts.errors import TimestampOutOfWindow
from libs.contracts.operating.overview import GET_OVERVIEW, GetOverview
from services.console.failures import sentence
from services.console.gateway import SignedGateway
from tests.unit.console.browser import settings


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
