"""An endpoint for webhooks on this machine: verifies deliveries, reports them, and forwards the genuine ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from libs.contracts.exact_json import NotExactJson, decode
from libs.signing.webhook import WebhookSignatureError, verify

MAX_BODY_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024
FORWARD_SECONDS = 12.0
"""The sender waits 15 s in all."""
NOT_FORWARDED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that are about one connection, not about the delivery."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery, and the answer to it.

    Args:
        refusal: why it is not genuine; None when it is, and only then it was forwarded.
        note: why the forward has no answer, if so.
    """

    received_at: datetime
    event_id: str
    type: str
    resource: str
    refusal: str | None
    status: int
    note: str | None = None


class Endpoint:
    """Answers deliveries.

    Args:
        forward: where genuine deliveries are handed on to, unchanged; None answers them 200.
        report: called with each delivery.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        forward: str | None,
        report: Callable[[Delivery], None],
    ) -> None:
        self._session = session
        self._forward = None if forward is None else URL(forward, encoded=True)
        self._report = report
        self.key: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The key that signs deliveries. They may arrive before it is known, and wait for it."""

    async def receive(self, request: web.Request) -> web.Response:
        received_at = datetime.now(UTC)
        body = await request.read()
        key = await asyncio.wait_for(asyncio.shield(self.key), FORWARD_SECONDS)
        refusal, note = _refusal(key, request, body), None
        if refusal is not None:
            answer = web.Response(status=400, text=f"{refusal}\n")
        elif self._forward is None:
            answer = web.Response(status=200)
        else:
            answer, note = await self._hand_on(self._forward, request, body)
        event_type, resource = _read(body)
        self._report(
            Delivery(
                received_at,
                request.headers.get("webhook-id", ""),
                event_type,
                resource,
                refusal,
                answer.status,
                note,
            )
        )
        return answer

    async def _hand_on(
        self, url: URL, request: web.Request, body: bytes
    ) -> tuple[web.Response, str | None]:
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in NOT_FORWARDED
        ]
        timeout = aiohttp.ClientTimeout(total=FORWARD_SECONDS, ceil_threshold=3600)
        try:
            async with self._session.post(
                url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                content = await _beginning_of(response.content)
                answer = web.Response(status=response.status, body=content)
                for name in ("Content-Type", "Retry-After"):
                    if name in response.headers:
                        answer.headers[name] = response.headers[name]
                return answer, None
        except TimeoutError:
            note = f"no answer within {FORWARD_SECONDS:g} s"
        except aiohttp.ClientConnectorError:
            note = "no process listens there"
        except aiohttp.ClientError as error:
            note = type(error).__name__
        return web.Response(status=502, text=f"{note}\n"), note


async def _beginning_of(content: aiohttp.StreamReader) -> bytes:
    """At most `MAX_ANSWER_BYTES`, which is all that the sender keeps of an answer."""
    beginning = b""
    while more := await content.read(MAX_ANSWER_BYTES - len(beginning)):
        beginning += more
    return beginning


@asynccontextmanager
async def listening(endpoint: Endpoint, port: int) -> AsyncIterator[str]:
    """Listen on loopback; the URL for deliveries. Port 0 is a free one."""
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_post("/", endpoint.receive)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def _refusal(key: bytes, request: web.Request, body: bytes) -> str | None:
    """Why a request is no genuine delivery; None when it is one."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    missing = [name for name in names if name not in request.headers]
    if missing:
        return f"{missing[0]} is missing"
    message_id, timestamp, signatures = (request.headers[name] for name in names)
    try:
        verify(
            key,
            message_id=message_id,
            timestamp=timestamp,
            signatures=signatures,
            body=body,
            now=time.time(),
        )
    except WebhookSignatureError as error:
        return str(error)
    return None


def _read(body: bytes) -> tuple[str, str]:
    """The type of an event, and its resource as `wire 0199…`; empty where the body does not say."""
    try:
        event: Any = decode(body)
    except NotExactJson:
        return "", ""
    match event:
        case {"type": str(name), "data": {"object": str()} as data}:
            return name, resource_of(data)
        case {"type": str(name)}:
            return name, ""
    return "", ""


def resource_of(data: Mapping[str, Any]) -> str:
    """What the data of an event are about, as `wire 0199…`."""
    kind = data.get("object", "")
    fields = (f"{kind}_id", "id", *(field for field in data if field.endswith("_id")), "")
    return f"{kind} {next((data[field] for field in fields if field in data), '')}"
