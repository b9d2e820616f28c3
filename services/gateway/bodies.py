"""Bodies of requests, read within bounds of size, time and number.

A body that has arrived as a whole is taken at once. Bodies that are still on their way hold memory: their number is
bounded, per key and address and in all. Beyond it, the oldest body of the key and address with the most is dropped, so
that one caller's unfinished bodies do not crowd out others.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from libs.contracts.errors import BodyTooLarge, RequestTimeout
from services.gateway.requests import MAX_BODY_BYTES

PER_CALLER = 64
IN_ALL = 256
"""Bodies on their way in one process."""

BodyOwner = tuple[str, int]
"""The address under which it is counted, and the id of its key's credential."""


class Bodies:
    """Reads bodies.

    Args:
        seconds: a body that is not there by then is given up.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._on_their_way: dict[BodyOwner, dict[asyncio.Timeout, None]] = {}

    async def read(self, request: web.Request, owner: BodyOwner) -> bytes:
        """The whole body.

        Raises:
            BodyTooLarge: more than 256 KiB.
            RequestTimeout: not there in time, or given up for another one.
        """
        if not request.body_exists:
            return b""
        try:
            if request.content.is_eof():
                return await self._rest(request)
            return await self._arriving(request, owner)
        except ConnectionError:  # the caller is gone
            raise RequestTimeout from None

    async def _arriving(self, request: web.Request, owner: BodyOwner) -> bytes:
        try:
            async with asyncio.timeout(self._seconds) as patience:
                self._make_room(owner)
                own = self._on_their_way.setdefault(owner, {})
                own[patience] = None
                try:
                    return await self._rest(request)
                finally:
                    own.pop(patience, None)
                    if not own:
                        self._on_their_way.pop(owner, None)
        except TimeoutError:
            raise RequestTimeout from None

    @staticmethod
    async def _rest(request: web.Request) -> bytes:
        body = bytearray()
        while chunk := await request.content.readany():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise BodyTooLarge
        return bytes(body)

    def _make_room(self, owner: BodyOwner) -> None:
        own = self._on_their_way.get(owner, {})
        if len(own) >= PER_CALLER:
            give_up_the_oldest(own)
        elif sum(map(len, self._on_their_way.values())) >= IN_ALL:
            give_up_the_oldest(max(self._on_their_way.values(), key=len))


def give_up_the_oldest(bodies: dict[asyncio.Timeout, None]) -> None:
    oldest = next(iter(bodies))
    del bodies[oldest]
    if not oldest.expired():  # else its own time has just run out
        oldest.reschedule(asyncio.get_running_loop().time())
