"""A browser at the console: it sends what browsers send, and follows nothing by itself."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from libs.runtime.connections import Connections
from services.console.application import SUBJECTS, build_application
from services.console.declarations import Subject
from services.console.security import csrf_token
from services.console.settings import Settings
from tests.unit.console.gateway_double import TOKEN, GatewayDouble

ORIGIN = "https://console.test"
SESSION = {"__Host-bankside-session": TOKEN}


def settings(**changes: Any) -> Settings:
    given = {
        "public_url": ORIGIN,
        "operator_key": "sub_" + "c" * 24,
        "operator_secret": "console-secret-of-a-test",
    }
    return Settings(**given | changes)


@dataclass
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]
    cookies: dict[str, str]

    @property
    def location(self) -> str | None:
        return self.headers.get("Location")


@dataclass
class Browser:
    client: TestClient[Any, Any]
    cookies: dict[str, str] = field(default_factory=lambda: dict(SESSION))

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._send("GET", path, headers or {})

    async def post(
        self,
        path: str,
        form: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """With the token that a form of the session has, unless `form` has another."""
        token = self.cookies.get("__Host-bankside-session", "")
        form = {"csrf": csrf_token(token), **form}
        sent = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        return await self._send("POST", path, sent, form)

    async def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None = None,
    ) -> Answer:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Host": "console.test", "Cookie": cookies, **headers}
        response: ClientResponse = await self.client.request(
            method, path, headers=sent, data=form, allow_redirects=False
        )
        text = await response.text()
        for name, morsel in response.cookies.items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
        found = {name: morsel.OutputString() for name, morsel in response.cookies.items()}
        return Answer(response.status, text, response.headers, found)


@asynccontextmanager
async def console(
    gateway: GatewayDouble,
    subjects: Sequence[tuple[str, Sequence[Subject]]] = SUBJECTS,
    **changes: Any,
) -> AsyncIterator[Browser]:
    """A browser with a session at a console whose gateway is the double."""
    connections = Connections(lambda peer: peer, per_address=64, in_all=64, stalled_seconds=10.0)
    application = build_application(settings(**changes), gateway, connections, subjects)
    async with TestClient(TestServer(application)) as client:
        yield Browser(client)


def csrf_of(page: str) -> str:
    """The token in a page's form."""
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]
