"""How a database is connected to: out of its URL, the arguments of `asyncpg.connect`.

| `sslmode` (or `ssl`) in the URL | connection |
|---|---|
| none, `disable` | not encrypted |
| `require`, `verify-ca`, `verify-full` | TLS; certificate and host name are verified in each of these modes |

Other modes, which fall back to an unencrypted connection, are refused. A Unix socket is never encrypted.

Of libpq's other parameters those are taken that asyncpg takes (`PARAMETERS`); any other one is refused, such as
`channel_binding=require`, which asyncpg cannot keep.
"""

from __future__ import annotations

import re
import ssl
from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from libs.tls import client_context

_MODES = ("sslmode", "ssl")
_ENCRYPTED = {"require", "verify-ca", "verify-full"}
_ROLES = {"any", "primary", "standby", "prefer-standby", "read-write", "read-only"}
PARAMETERS = (*_MODES, "host", "port", "passfile", "krbsrvname", "gsslib", "target_session_attrs")
"""Those that a URL may have after its `?`."""
_FORM = "it is not postgresql://login:password@host:port/database"


class BadDatabaseUrl(ValueError):
    """The message is half a sentence and shows nothing of the URL."""


def parse_database_url(url: str) -> URL:
    """Raises BadDatabaseUrl."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadDatabaseUrl(_FORM) from None
    if not parsed.drivername.startswith("postgres"):
        raise BadDatabaseUrl(_FORM)
    if "@" in (parsed.host or ""):
        raise BadDatabaseUrl("an @ in its password is to be written %40")
    # A part of a password with a ? looks like a parameter, too: its name is not shown.
    if not parsed.query.keys() <= set(PARAMETERS):
        raise BadDatabaseUrl(f"its parameters, after the ?, may be {', '.join(PARAMETERS)} only")
    if parsed.query.get("target_session_attrs", "any") not in _ROLES:
        raise BadDatabaseUrl(f"its target_session_attrs is one of {', '.join(sorted(_ROLES))}")
    if not _is_port(parsed.query.get("port", parsed.port)):
        raise BadDatabaseUrl("its port is a number from 1 to 65535")
    uses_tls(parsed)
    return parsed


def _is_port(port: object) -> bool:
    """Also None, for the default."""
    return port is None or (
        re.fullmatch(r"[0-9]{1,5}", str(port)) is not None and 1 <= int(str(port)) <= 65535
    )


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
