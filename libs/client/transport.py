"""One signed request over HTTP: a fresh timestamp and nonce every time it is sent."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from libs.client.credentials import Credentials
from libs.client.errors import OperatorError
from libs.signing.request import body_digest, canonical_string, sign

TIMEOUT_SECONDS = 30.0
"""For one attempt: the gateway answers within 25 s."""
CONNECT_SECONDS = 5.0
ANSWER_BYTES = 16 * 1024 * 1024


class NotSent(Exception):
    """There is no connection, so nothing was sent. The message is the cause, without the request."""


class NoAnswer(Exception):
    """The request may have been sent, and there is no whole answer: its outcome is unknown."""


class _Once:
    """A middleware of one request. By itself aiohttp repeats a GET, PUT or DELETE whose connection is reset, with
    the nonce that is used up.
    """

    def __init__(self) -> None:
        self._is_sent = False

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._is_sent:
            raise NoAnswer("the connection was reset")
        self._is_sent = True
        return await handler(request)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, with the string that was signed for its request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    canonical: str = field(repr=False)


class Transport:
    """Signs with one key and sends to one gateway.

    Args:
        base_url: of the gateway; a path in it is a prefix of every target.
        session: redirects are not followed, since a signature is for one target.
        headers: of every request.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        session: aiohttp.ClientSession,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._credentials = credentials
        self._secret = credentials.secret.encode()
        self._session = session
        self._headers = dict(headers or {})

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Response:
        """Sign and send, once. `target` is the path and query, encoded as it is to be sent.

        Raises:
            OperatorError: the key or a header has a character that cannot be sent.
            NotSent: no connection.
            NoAnswer: no whole answer in time.
        """
        url = URL(self._base_url + target, encoded=True)
        key = {"X-API-SUBSCRIPTION-KEY": self._credentials.subscription_key}
        given = {**self._headers, **(headers or {}), **key}
        for name, value in given.items():
            if not value.isprintable():
                raise OperatorError(
                    f"The value of {name} has a line break or another character that cannot be sent."
                )
        timestamp, nonce = str(int(time.time())), secrets.token_urlsafe(24)
        canonical = canonical_string(
            timestamp,
            nonce,
            self._credentials.subscription_key,
            method,
            url.raw_path_qs,
            body_digest(body),
        )
        signed = {
            **given,
            "X-API-TIMESTAMP": timestamp,
            "X-API-NONCE": nonce,
            "X-API-SIGNATURE": sign(self._secret, canonical),
        }
        if body:
            signed.setdefault("Content-Type", "application/json")
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, connect=CONNECT_SECONDS)
        try:
            async with self._session.request(
                method,
                url,
                data=body or None,
                headers=signed,
                skip_auto_headers=("Content-Type",),  # of a body that there is not
                allow_redirects=False,
                timeout=timeout,
                middlewares=(_Once(),),
            ) as response:
                content = await response.content.read(ANSWER_BYTES + 1)
                while len(content) <= ANSWER_BYTES and (
                    more := await response.content.read(ANSWER_BYTES + 1 - len(content))
                ):
                    content += more
                if len(content) > ANSWER_BYTES:
                    raise NoAnswer("the answer is too large")
                return Response(response.status, response.headers, content, canonical.decode())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(type(error).__name__) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswer(type(error).__name__) from error
