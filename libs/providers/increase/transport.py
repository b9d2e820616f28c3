"""The SDK's requests over a session of aiohttp: each sent once, bounded in size, its failure named.

The transport that comes with the SDK reports a connection that was refused and one that broke after the request was
sent by the same error. Only the first of them is certainly without effect, so the two are told apart here.
"""

from __future__ import annotations

import aiohttp
import httpx
from yarl import URL

from libs.providers.errors import AttemptFailed, Failure
from libs.providers.sessions import CONNECT_SECONDS, note_response, read_bounded
from libs.providers.storable_json import storable_json


class SessionTransport(httpx.AsyncBaseTransport):
    """Raises AttemptFailed, which the SDK makes the cause of an error of its own. The time is bounded by the caller.

    Args:
        session: from `sessions.open_session`. The caller closes it.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        data = await request.aread()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        url = URL(str(request.url), encoded=True)
        try:
            async with self._session.request(
                request.method,
                url,
                data=data or None,
                headers=request.headers.multi_items(),
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                note_response(request.method, url, response.status)
                body = await read_bounded(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise AttemptFailed(Failure.NOT_CONNECTED) from None
        except aiohttp.ClientError:
            raise AttemptFailed(Failure.BROKEN) from None
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            # No other encoding is asked for. A body that is decoded has no bound.
            raise AttemptFailed(Failure.UNREADABLE, response.status)
        return httpx.Response(
            response.status,
            headers=response.raw_headers,
            content=storable_json(body),
            request=request,
        )
