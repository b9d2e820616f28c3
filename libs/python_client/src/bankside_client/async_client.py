"""The client for programs on asyncio or trio."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

import anyio
import httpx

from bankside_client.answers import Answer, AsyncPage
from bankside_client.async_methods import AsyncMethods
from bankside_client.connections import LoopConnections
from bankside_client.exchange import (
    ANSWER_BYTES,
    Exchange,
    Gateway,
    Operation,
    is_read_ahead,
    next_values,
)

T = TypeVar("T")


class AsyncClient(AsyncMethods):
    """As `Client`, with methods to await: `async for wire in await bankside.list_wires()`.

    `timeout_seconds` ends each send, also while its status and headers come.

    One event loop after another may use it. Loops that run at the same time, in several threads, take a client each.
    """

    def __init__(
        self,
        base_url: str,
        subscription_key: str,
        secret: str,
        *,
        attempts: int = 5,
        patience_seconds: float = 60.0,
        timeout_seconds: float = 30.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._gateway = Gateway(
            base_url, subscription_key, secret, attempts, patience_seconds, timeout_seconds
        )
        self._connections = LoopConnections(http)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _call(
        self,
        operation: Operation[T],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
        idempotency_key: str | None = None,
    ) -> Answer[T]:
        exchange = Exchange(self._gateway, operation, path_values, values, idempotency_key)
        connections = await self._connections.of_this_loop()
        with exchange:
            while True:
                request = exchange.request()
                try:
                    response, body = await self._send(connections.http, request)
                except Exception as error:
                    outcome: Answer[T] | float = exchange.lost(error)
                else:
                    outcome = exchange.answered(response, body)
                if isinstance(outcome, Answer):
                    return outcome
                await anyio.sleep(outcome)

    async def _list(
        self,
        operation: Operation[list[T]],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
    ) -> AsyncPage[T]:
        answer = await self._call(operation, path_values, values)
        following = next_values(operation, values, answer)
        if following is None:
            return AsyncPage(**vars(answer), following=None)
        return AsyncPage(
            **vars(answer),
            following=lambda: self._list(operation, path_values, following),
            is_read_ahead=is_read_ahead(operation, values),
        )

    async def _send(
        self, http: httpx.AsyncClient, request: httpx.Request
    ) -> tuple[httpx.Response, bytes]:
        with anyio.move_on_after(self._gateway.timeout_seconds):
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > ANSWER_BYTES:
                        raise httpx.ReadError("The answer is too large.", request=request)
                return response, bytes(body)
            finally:
                await response.aclose()
        raise httpx.ReadTimeout("The answer is too slow.", request=request)
