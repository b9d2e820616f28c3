"""A callback URL taken apart, once: what is checked is what is dialled.

The URL is read by one strict expression over the characters that RFC 3986 allows, nothing is normalised but the case of
scheme and host, and the URL that is handed to the HTTP client is made of the very parts that were checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from yarl import URL

from services.webhook_dispatcher.adapters.networks import Address, parsed

MAX_CHARACTERS: Final = 2048
DEFAULT_PORTS: Final = {"https": 443, "http": 80}

_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PARTS = re.compile(r"([A-Za-z]+)://([^/?#]*)([^#]*)")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[A-Za-z0-9._-]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


class Unfit(Exception):
    """No delivery goes to this URL. The message is a sentence for the subscriber that says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a callback URL leads.

    Args:
        host: as written, in lower case; of IPv6 without brackets.
        address: what the host is, when it is a literal address.
        request: the same scheme, host, port, path and query, for the HTTP client.
    """

    scheme: str
    host: str
    port: int
    address: Address | None
    request: URL

    @property
    def is_host_name(self) -> bool:
        return self.address is None and is_host_name(self.host)


def is_host_name(host: str) -> bool:
    """Labels as in DNS, underscores among them, none of them empty; a last label that is a number makes it an address
    (https://url.spec.whatwg.org/#ends-in-a-number-checker).
    """
    labels = host.split(".")
    return (
        len(host) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )


@lru_cache(maxsize=4096)
def target_of(url: str) -> Target:
    """Take a callback URL apart.

    Raises:
        Unfit: it is not an absolute http or https URL in plain ASCII with a host, or has user info or a fragment.
    """
    if len(url) > MAX_CHARACTERS:
        raise Unfit(f"The URL is longer than {MAX_CHARACTERS:,} characters.")
    if not _CHARACTERS.fullmatch(url) or _PERCENT.search(url):
        raise Unfit(
            "The URL has characters that a URL cannot have: write them percent-encoded, "
            "and those of a host name in its xn-- form."
        )
    if "#" in url:
        raise Unfit("The URL has a fragment.")
    parts = _PARTS.fullmatch(url)
    if parts is None or (scheme := parts[1].lower()) not in DEFAULT_PORTS:
        raise Unfit("The URL is not absolute, with https.")
    if "@" in parts[2]:
        raise Unfit("The URL has user info.")
    authority = _AUTHORITY.fullmatch(parts[2])
    if authority is None or not (host := authority[1].lower()):
        raise Unfit("The URL has no host name, or a port that is not one.")
    port = int(authority[2]) if authority[2] else DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65535:
        raise Unfit("The URL has no host name, or a port that is not one.")
    tail = parts[3] if parts[3].startswith("/") else f"/{parts[3]}"
    return _target(scheme, host, port, tail)


def _target(scheme: str, host: str, port: int, tail: str) -> Target:
    address = None
    if host.startswith("["):
        address = parsed(host[1:-1])
        if address is None or address.version != 6:
            raise Unfit("The URL has no host name, or a port that is not one.")
    else:
        address = parsed(host)
    bare = host.strip("[]")
    try:
        request = URL(f"{scheme}://{host}:{port}{tail}", encoded=True)
        agreed = (request.scheme, request.raw_host, request.port, request.raw_path_qs)
    except ValueError:
        agreed = None
    if agreed != (scheme, bare, port, tail):
        raise Unfit("The URL can be read in more than one way.")
    return Target(scheme, bare, port, address, request)
