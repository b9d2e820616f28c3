"""What tests of the Python client share: both kinds of it, called alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import httpx
import pytest
from aiohttp import web

from bankside_client import AsyncClient, AsyncPage, BanksideError, Client, Page
from libs.contracts.exact_json import encode
from tests.unit.client.answering import KEY, Gateway, problem

WIRE = {
    "transaction_id": "t1",
    "sending_account_id": "a",
    "external_account_id": "e",
    "amount": Decimal("1234567890.12"),
    "note": "Invoice",
}
SENT = {
    "sending_account_id": "a",
    "external_account_id": "e",
    "amount": Decimal("1234567890.12"),
    "purpose": "Invoice",
}
UNAVAILABLE = problem(503, "unavailable", headers={"Retry-After": "0"})

Call = Callable[..., Coroutine[Any, Any, Any]]


def plain(status: int, body: Any) -> web.Response:
    """JSON that is neither an envelope nor a problem."""
    return web.Response(status=status, body=encode(body), content_type="application/json")


@asynccontextmanager
async def calling(kind: str, base_url: str, **more: Any) -> AsyncIterator[Call]:
    """Calls a method by its name; pages come back with the items of all of them."""
    if kind == "sync":
        with Client(base_url, KEY.subscription_key, KEY.secret, attempts=3, **more) as client:

            def call(name: str, *args: Any, **values: Any) -> Any:
                made = getattr(client, name)(*args, **values)
                return list(made) if isinstance(made, Page) else made

            async def in_thread(name: str, *args: Any, **values: Any) -> Any:
                return await asyncio.to_thread(call, name, *args, **values)

            yield in_thread
    else:
        async with AsyncClient(base_url, KEY.subscription_key, KEY.secret, attempts=3, **more) as a:

            async def awaited(name: str, *args: Any, **values: Any) -> Any:
                made = await getattr(a, name)(*args, **values)
                return [item async for item in made] if isinstance(made, AsyncPage) else made

            yield awaited


@asynccontextmanager
async def of_the_callers(kind: str, **settings: Any) -> AsyncIterator[Any]:
    """An HTTP client that the caller passes."""
    if kind == "sync":
        with httpx.Client(**settings) as http:
            yield http
    else:
        async with httpx.AsyncClient(**settings) as of_async:
            yield of_async


async def failure(
    kind: str, server: Gateway, name: str, *args: Any, **values: Any
) -> BanksideError:
    async with calling(kind, server.base_url) as call:
        with pytest.raises(BanksideError) as raised:
            await call(name, *args, **values)
    return raised.value
