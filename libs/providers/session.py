"""The HTTP session that the clients of one process share."""

from __future__ import annotations

import aiohttp

KEEP_ALIVE_SECONDS = 30


def open_session(connections: int) -> aiohttp.ClientSession:
    """Kept-alive connections, at most `connections` in all; no cookies, no proxy of the environment.

    To be opened within a running loop and closed by whoever opened it.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )
