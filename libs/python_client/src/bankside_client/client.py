"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx

from bankside_client.answers import Answer, Page
from bankside_client.connections import ProcessConnections
from bankside_client.exchange import (
    ANSWER_BYTES,
    Exchange,
    Gateway,
    Operation,
    is_read_ahead,
    next_values,
)
from bankside_client.methods import Methods

T = TypeVar("T")


class Client(Methods):
    """Signs, sends, retries, reads.

    Use it as a context manager, or close it. Threads may share it.

    Args:
        base_url: of the gateway, such as `https://bank.example.com`.
        subscription_key, secret: the key that signs.
        attempts: at most this many sends of one request.
        patience_seconds: no retry begins later than this after the first send; 0 for no retries.
        timeout_seconds: of one send; the gateway answers within 25 s. The first bytes of the body that come later end
            the send. httpx limits each read by as much, and not all reads together: status and headers that come in
            small pieces can take longer, which only `AsyncClient` ends in time.
        http: a client of yours, for proxies or certificates, made in the process that uses it; it is not closed here.
            Redirects are not followed: a signature is for one target.

    Raises:
        ValueError: `base_url` is not that of a gateway, no header takes the subscription key, or `attempts`,
            `patience_seconds` or `timeout_seconds` is not finite, or out of its range.
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
        http: httpx.Client | None = None,
    ) -> None:
        self._gateway = Gateway(
            base_url, subscription_key, secret, attempts, patience_seconds, timeout_seconds
        )
        self._connections = ProcessConnections(http)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self,
        operation: Operation[T],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
        idempotency_key: str | None = None,
    ) -> Answer[T]:
        exchange = Exchange(self._gateway, operation, path_values, values, idempotency_key)
        http = self._connections.of_this_process()
        with exchange:
            while True:
                request = exchange.request()
                try:
                    response, body = self._send(http, request)
                except Exception as error:
                    outcome: Answer[T] | float = exchange.lost(error)
                else:
                    outcome = exchange.answered(response, body)
                if isinstance(outcome, Answer):
                    return outcome
                time.sleep(outcome)

    def _list(
        self,
        operation: Operation[list[T]],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
    ) -> Page[T]:
        answer = self._call(operation, path_values, values)
        following = next_values(operation, values, answer)
        if following is None:
            return Page(**vars(answer), following=None)
        return Page(
            **vars(answer),
            following=lambda: self._list(operation, path_values, following),
            is_read_ahead=is_read_ahead(operation, values),
        )

    def _send(self, http: httpx.Client, request: httpx.Request) -> tuple[httpx.Response, bytes]:
        give_up_at = time.monotonic() + self._gateway.timeout_seconds
        response = http.send(request, stream=True, follow_redirects=False)
        try:
            if response.is_stream_consumed:  # of a transport that gives answers whole, as in tests
                return response, response.content
            raw = _in_time(response, give_up_at)
            decoded = httpx.Response(response.status_code, headers=response.headers, content=raw)
            body = bytearray()
            for part in decoded.iter_bytes():
                body += part
                if len(body) > ANSWER_BYTES:
                    raise httpx.ReadError("The answer is too large.", request=request)
            return response, bytes(body)
        finally:
            response.close()


def _in_time(response: httpx.Response, give_up_at: float) -> Iterator[bytes]:
    """The body before it is decoded: of bytes that decode to nothing, the decoded one has no part."""
    for part in response.iter_raw():
        if time.monotonic() > give_up_at:
            raise httpx.ReadTimeout("The answer is too slow.", request=response.request)
        yield part
