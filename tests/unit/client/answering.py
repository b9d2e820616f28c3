"""A gateway that gives prepared answers and keeps what it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from libs.client.credentials import Credentials
from libs.contracts.exact_json import encode
from libs.signing.request import body_digest, canonical_string, matches
from tests.support.waiting import eventually

KEY = Credentials("sub_0123456789abcdefghijkl", "sécret")
DROP = "drop"
"""An answer: the connection is closed without one."""
HANG = "hang"
"""An answer: there is none until the gateway ends."""


@dataclass
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    signed: bool
    port: int
    """Of the caller's end of the connection."""


@dataclass
class Gateway:
    """Gives its answers in their order, the last one again and again."""

    base_url: str
    answers: list[Callable[[], web.Response] | str]
    received: list[Received] = field(default_factory=list)
    ends: asyncio.Event = field(default_factory=asyncio.Event)

    async def has_received(self, number: int) -> None:
        """Return once as many requests have come."""

        async def came() -> bool:
            return len(self.received) >= number

        await eventually(f"{number} requests", came)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        header = request.headers
        canonical = canonical_string(
            header.get("X-API-TIMESTAMP", ""),
            header.get("X-API-NONCE", ""),
            header.get("X-API-SUBSCRIPTION-KEY", ""),
            request.method,
            request.raw_path,
            body_digest(body),
        )
        signed = matches(KEY.secret.encode(), canonical, header.get("X-API-SIGNATURE", ""))
        assert request.transport is not None
        _, port = request.transport.get_extra_info("peername")
        self.received.append(
            Received(request.method, request.raw_path, dict(header), body, signed, port)
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == HANG:
            await self.ends.wait()
        if isinstance(answer, str):
            request.transport.close()
            return web.Response()
        return answer()


@asynccontextmanager
async def gateway(*answers: Callable[[], web.Response] | str) -> AsyncIterator[Gateway]:
    server = Gateway("", list(answers))
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        server.ends.set()
        await runner.cleanup()


def success(data: Any, message: str = "Done", **more: Any) -> Callable[[], web.Response]:
    """An envelope; `headers` among the rest go with it."""
    headers = more.pop("headers", {})
    content = encode({"message": message, "data": data, **more})
    return lambda: web.Response(body=content, content_type="application/json", headers=headers)


def answer(content: Any, status: int = 200) -> Callable[[], web.Response]:
    """JSON without an envelope."""
    return lambda: web.Response(
        status=status, body=encode(content), content_type="application/json"
    )


def problem(status: int, code: str, **more: Any) -> Callable[[], web.Response]:
    headers = more.pop("headers", {})
    members = {
        "type": "about:blank",
        "title": "No",
        "status": status,
        "detail": "No.",
        "code": code,
    }
    content = encode(members | more)
    return lambda: web.Response(
        status=status, body=content, content_type="application/problem+json", headers=headers
    )
