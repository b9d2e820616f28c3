"""The client of one API of the sandbox: reads that may be repeated, writes that are sent once under a key.

    client = ProviderClient("core", "http://127.0.0.1:8090/core", token, session)
    account = await client.read("get_account", "/accounts/acc_1", deadline=deadline)
    opened = await client.send("open_account", "POST", "/accounts", body, idempotency_key=key, deadline=deadline)

Deadlines are Unix seconds. An answer's numbers with a fraction are exact Decimals. Path segments that hold foreign text
go through `segment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from libs.contracts.exact_json import encode
from libs.providers.circuit import Circuit
from libs.providers.errors import AttemptFailed, Failure, ProviderRefusal
from libs.providers.exchanges import Exchange, Exchanges
from libs.providers.sandbox.transport import Transport, refusal
from libs.providers.sessions import connections_of

ASK_OPERATION = "get_operation"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The body of the answer that a provider stored under an idempotency key."""

    body: Any


def segment(text: str) -> str:
    """`text` as one segment of a path."""
    return quote(text, safe="")


class ProviderClient:
    """One provider's API. Safe for any number of concurrent callers.

    Args:
        name: the provider, for metrics and logs.
        base_url: absolute; paths are appended to it.
        session: from `sessions.open_session`.
        timeout_seconds: at most this long for one attempt, from when it has a connection.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        token: str,
        session: aiohttp.ClientSession,
        *,
        timeout_seconds: float = 5.0,
        circuit: Circuit | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"the URL of provider {name} must be absolute")
        self._base_url = base_url.rstrip("/")
        self._transport = Transport(token, session)
        self._exchanges = Exchanges(
            name,
            timeout_seconds=timeout_seconds,
            circuit=circuit,
            connections=connections_of(session),
        )

    async def read(
        self,
        operation: str,
        path: str,
        params: Sequence[tuple[str, str]] = (),
        *,
        deadline: float,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """GET; tried up to three times with short pauses, within the deadline.

        Raises:
            ProviderRefusal: 4xx; 404 has the code `not_found`.
            ProviderTimeout: no answer in time.
            ProviderError: 5xx, a broken connection or an answer that cannot be read.
            Unavailable: the provider was not reached, or its circuit breaker is open.
        """
        return await self._exchanges.read(
            operation, self._get(path, params, headers), deadline=deadline
        )

    async def send(
        self,
        operation: str,
        method: Literal["POST", "PATCH"],
        path: str,
        body: Any,
        *,
        idempotency_key: str,
        deadline: float,
    ) -> Any:
        """Send `body` once under `idempotency_key`. Whether it may be sent is decided by `writing.write_once`.

        Raises:
            ProviderRefusal: 4xx in the provider's error shape.
            AttemptFailed: there is no usable answer; its `failure` says whether there may be an effect.
        """
        url, data = self._url(path), encode(body)
        headers = {"Idempotency-Key": idempotency_key, "Content-Type": "application/json"}
        return await self._exchanges.once(
            operation,
            lambda seconds: self._transport.exchange(seconds, method, url, data, headers),
            deadline=deadline,
        )

    async def stored_answer(self, idempotency_key: str, *, deadline: float) -> StoredAnswer | None:
        """The answer that the provider stored under the key; None when it does not know the key.

        Raises:
            ProviderRefusal: the stored answer is a refusal.
            AttemptFailed: there is no usable answer.
        """
        path = f"/operations/{segment(idempotency_key)}"
        try:
            earlier = await self._exchanges.repeated(
                ASK_OPERATION, self._get(path), deadline=deadline
            )
        except ProviderRefusal as refused:
            if refused.status == 404 and refused.code == "unknown_key":
                return None
            raise AttemptFailed(Failure.UNREADABLE, refused.status) from refused
        match earlier:
            case {"status": int(status), "body": body} if 200 <= status < 300:
                return StoredAnswer(body)
            case {"status": int(status), "body": body} if 400 <= status < 500:
                raise refusal(status, body)
            case _:
                raise AttemptFailed(Failure.UNREADABLE)

    def _get(
        self,
        path: str,
        params: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Exchange[Any]:
        url = self._url(path, params)
        return lambda seconds: self._transport.exchange(seconds, "GET", url, None, headers)

    def _url(self, path: str, params: Sequence[tuple[str, str]] = ()) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._base_url}{path}{query}", encoded=True)
