"""One HTTP exchange with the sandbox: sent once, bounded in time and size, its outcome named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from libs import tracing
from libs.contracts.exact_json import NotExactJson, decode
from libs.providers.errors import NO_DECISION, AttemptFailed, Failure, ProviderRefusal
from libs.providers.sessions import CONNECT_SECONDS, note_response, read_bounded


class Transport:
    """Requests to one provider, with its credentials: each is one exchange as `exchanges` wants it."""

    def __init__(self, token: str, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}

    async def exchange(
        self,
        seconds: float,
        method: str,
        url: URL,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send once; the decoded answer.

        Raises:
            ProviderRefusal: 4xx in the provider's error shape.
            AttemptFailed: no usable answer.
        """
        timeout = aiohttp.ClientTimeout(
            total=seconds, sock_connect=min(seconds, CONNECT_SECONDS), ceil_threshold=3600
        )
        sent = {**self._headers, **headers} if headers else self._headers
        if (trace := tracing.current()) is not None:
            sent = {**sent, "traceparent": tracing.headers_of(trace)["traceparent"]}
        try:
            async with self._session.request(
                method,
                url,
                data=data,
                headers=sent,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                status = response.status
                note_response(method, url, status)
                body = await read_bounded(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise AttemptFailed(Failure.NOT_CONNECTED) from None
        except TimeoutError:
            raise AttemptFailed(Failure.TIMED_OUT) from None
        except aiohttp.ClientError as error:
            raise AttemptFailed(Failure.BROKEN) from error
        if status >= 500:
            raise AttemptFailed(Failure.SERVER_ERROR, status)
        if status in NO_DECISION:
            raise AttemptFailed(Failure.TURNED_AWAY, status)
        try:
            answer = decode(body)
        except NotExactJson as error:
            raise AttemptFailed(Failure.UNREADABLE, status) from error
        if 200 <= status < 300:
            return answer
        if 400 <= status < 500:
            raise refusal(status, answer)
        raise AttemptFailed(Failure.UNREADABLE, status)


def refusal(status: int, body: Any) -> ProviderRefusal:
    """The refusal that a 4xx body states.

    Raises:
        AttemptFailed: the body is not of the provider's error shape, so it may not be the provider that answered.
    """
    match body:
        case {"error": {"code": str(code), "message": str(message)}}:
            return ProviderRefusal(status, code, message)
        case _:
            raise AttemptFailed(Failure.UNREADABLE, status)
