"""The client of one provider: reads that may be repeated, writes that are sent once under a key.

    client = ProviderClient("core", "http://127.0.0.1:8090/core", token, session)
    account = await client.read("get_account", "/accounts/acc_1", deadline=deadline)
    opened = await client.write("open_account", "POST", "/accounts", body, idempotency_key=key, deadline=deadline)

Deadlines are unix seconds. An answer's numbers with a fraction are exact Decimals. Path segments that hold foreign text
go through `segment`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from libs.contracts.errors import BanksideError, ProviderError, ProviderTimeout, Unavailable
from libs.contracts.exact_json import encode
from libs.providers.attempt import Line, refusal
from libs.providers.circuit import Circuit
from libs.providers.errors import ProviderNotReached, ProviderRefusal, ProviderUnknown
from libs.providers.failure import AttemptFailed, Failure

READ_ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.05
ASK_OPERATION = "get_operation"


def segment(text: str) -> str:
    """`text` as one segment of a path."""
    return quote(text, safe="")


class ProviderClient:
    """One provider's API. Safe for any number of concurrent callers.

    Args:
        name: the provider, for metrics and logs.
        base_url: absolute; paths are appended to it.
        session: from `session.open_session`, closed by whoever opened it.
        timeout_seconds: at most this long for one attempt.
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
        self._line = Line(name, token, session, timeout_seconds, circuit)

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
            Unavailable: the provider was not reached or is left alone for now.
        """
        try:
            return await self._read(operation, path, params, deadline, headers)
        except AttemptFailed as error:
            raise _read_error(error.failure) from error

    async def write(
        self,
        operation: str,
        method: Literal["POST", "PATCH"],
        path: str,
        body: Any,
        *,
        idempotency_key: str,
        deadline: float,
        resumed: bool = False,
    ) -> Any:
        """Send `body` once under `idempotency_key`.

        Args:
            resumed: an earlier send under this key may have happened. The provider is asked for the key first, and the
                body is sent only if it does not know it.

        Raises:
            ProviderRefusal: a definite no, of this send or of the earlier one.
            ProviderNotReached: certainly nothing was sent. Never when `resumed`: the earlier send may be under way.
            ProviderUnknown: it may have happened; call again with `resumed=True`.
        """
        try:
            if resumed:
                known, answer = await self._ask(idempotency_key, deadline)
                if known:
                    return answer
            return await self._line.attempt(
                operation,
                method,
                self._url(path),
                deadline=deadline,
                data=encode(body),
                headers={"Idempotency-Key": idempotency_key, "Content-Type": "application/json"},
            )
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect and not resumed:
                raise ProviderNotReached(str(error)) from error
            raise ProviderUnknown(str(error)) from error

    async def earlier(self, idempotency_key: str, *, deadline: float) -> tuple[bool, Any]:
        """Whether the provider knows a write under this key, and what it answered. Nothing is sent again.

        Raises:
            ProviderRefusal: it knows the key, and its answer was a definite no.
            ProviderUnknown: it could not be asked.
        """
        try:
            return await self._ask(idempotency_key, deadline)
        except AttemptFailed as error:
            raise ProviderUnknown(str(error)) from error

    async def _ask(self, idempotency_key: str, deadline: float) -> tuple[bool, Any]:
        """Whether the provider knows the key, and the answer it gave then."""
        path = f"/operations/{segment(idempotency_key)}"
        try:
            earlier = await self._read(ASK_OPERATION, path, (), deadline)
        except ProviderRefusal as refused:
            if refused.status == 404 and refused.code == "unknown_key":
                return False, None
            raise AttemptFailed(Failure.UNREADABLE, refused.status) from refused
        match earlier:
            case {"status": int(status), "body": body} if 200 <= status < 300:
                return True, body
            case {"status": int(status), "body": body} if 400 <= status < 500:
                raise refusal(status, body)
            case _:
                raise AttemptFailed(Failure.UNREADABLE)

    async def _read(
        self,
        operation: str,
        path: str,
        params: Sequence[tuple[str, str]],
        deadline: float,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        url = self._url(path, params)
        pause_seconds = FIRST_PAUSE_SECONDS
        for attempts_left in range(READ_ATTEMPTS - 1, -1, -1):
            try:
                return await self._line.attempt(
                    operation, "GET", url, deadline=deadline, headers=headers
                )
            except AttemptFailed as error:
                pause = pause_seconds * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret
                no_time = time.time() + pause >= deadline
                if not (error.failure.is_strike and attempts_left) or no_time:
                    raise
            await asyncio.sleep(pause)
            pause_seconds *= 4
        raise AssertionError("the last attempt returns or raises")

    def _url(self, path: str, params: Sequence[tuple[str, str]] = ()) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._base_url}{path}{query}", encoded=True)


def _read_error(failure: Failure) -> BanksideError:
    match failure:
        case Failure.TIMED_OUT | Failure.NO_TIME:
            return ProviderTimeout()
        case Failure.CIRCUIT_OPEN | Failure.NOT_CONNECTED | Failure.TURNED_AWAY:
            return Unavailable("A provider cannot be reached. Try again shortly.")
        case Failure.BROKEN | Failure.SERVER_ERROR | Failure.UNREADABLE:
            return ProviderError()
