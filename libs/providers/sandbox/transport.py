"""One HTTP exchange with the sandbox: sent once, bounded in time and size, its outcome named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from libs.contracts.exact_json import NotExactJson, decode
from libs.providers.errors import TURNS_AWAY, AttemptFailed, Failure, ProviderRefusal
from libs.tls import client_context

MAX_ANSWER_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 30


def open_session(connections: int, *, ca_file: str | None = None) -> aiohttp.ClientSession:
    """The HTTP session of one process: at most `connections`, kept alive; no cookies, no proxy of the environment.

    Called within a running event loop. The caller closes the session.

    Args:
        ca_file: the CAs of the providers' certificates, instead of those that the system trusts.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ssl=client_context(ca_file) if ca_file else True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


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
        try:
            async with self._session.request(
                method,
                url,
                data=data,
                headers={**self._headers, **headers} if headers else self._headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                status = response.status
                body = await _read(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise AttemptFailed(Failure.NOT_CONNECTED) from None
        except TimeoutError:
            raise AttemptFailed(Failure.TIMED_OUT) from None
        except aiohttp.ClientError as error:
            raise AttemptFailed(Failure.BROKEN) from error
        if status >= 500:
            raise AttemptFailed(Failure.SERVER_ERROR, status)
        if status in TURNS_AWAY:
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


async def _read(response: aiohttp.ClientResponse) -> bytes:
    content = response.content
    first = await content.readany()
    if content.at_eof():
        return first
    parts = [first]
    size = len(first)
    while not content.at_eof():
        part = await content.readany()
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise AttemptFailed(Failure.UNREADABLE, response.status)
        parts.append(part)
    return b"".join(parts)
