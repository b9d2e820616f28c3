"""How a database is connected to: out of its URL, the arguments of `asyncpg.connect`.

| `sslmode` (or `ssl`) in the URL | connection |
|---|---|
| none, `disable` | not encrypted |
| `require`, `verify-ca`, `verify-full` | TLS; certificate and host name are verified in each of these modes |

Other modes, which fall back to an unencrypted connection, are refused. A Unix socket is never encrypted.
"""

from __future__ import annotations

import ssl
from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from libs.tls import client_context

_MODES = ("sslmode", "ssl")
_ENCRYPTED = {"require", "verify-ca", "verify-full"}


class BadDatabaseUrl(ValueError):
    """The message is half a sentence and shows nothing of the URL."""


def parse_database_url(url: str) -> URL:
    """Raises BadDatabaseUrl."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadDatabaseUrl("it is not postgresql://login:password@host:port/database") from None
    if not parsed.drivername.startswith("postgres"):
        raise BadDatabaseUrl("it is not postgresql://login:password@host:port/database")
    uses_tls(parsed)
    return parsed


def uses_tls(parsed: URL) -> bool:
    """Raises BadDatabaseUrl."""
    modes = {str(parsed.query[name]) for name in _MODES if name in parsed.query}
    if modes <= {"disable"}:
        return False
    if modes <= _ENCRYPTED:
        return True
    raise BadDatabaseUrl("its sslmode is to be disable or verify-full")


def host_of(parsed: URL) -> str:
    """The server's host; the path of a socket, or nothing, for one on this machine."""
    return str(parsed.query.get("host") or parsed.host or "")


def connect_arguments(url: str, ca_file: str | None = None) -> dict[str, Any]:
    """The arguments of `asyncpg.connect` for a database URL.

    Args:
        ca_file: as in `libs.tls.client_context`.

    Raises:
        BadDatabaseUrl, BadCertificates.
    """
    parsed = parse_database_url(url)
    encryption: ssl.SSLContext | bool = client_context(ca_file) if uses_tls(parsed) else False
    return {
        **parsed.translate_connect_args(username="user"),
        **{name: value for name, value in parsed.query.items() if name not in _MODES},
        "ssl": encryption,
    }
