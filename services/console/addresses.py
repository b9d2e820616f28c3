"""From which address a browser comes, behind proxies too: the gateway counts failed log-ins by it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from aiohttp import web

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MOST_HOPS = 32


def networks(text: str) -> tuple[Network, ...]:
    """Networks separated by commas. Raises ValueError."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


def browser_of(request: web.Request, trusted: Sequence[Network]) -> str | None:
    """The nearest address that is no trusted proxy's, read from the right of X-Forwarded-For."""
    peer = request.remote
    hops = ",".join(request.headers.getall("X-Forwarded-For", ())).split(",")[-MOST_HOPS:]
    while peer is not None and hops and _is_in(peer, trusted):
        hop = hops.pop().strip()
        if not _is_address(hop):
            break
        peer = hop
    return peer


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_in(address: str, trusted: Sequence[Network]) -> bool:
    if not _is_address(address):
        return False
    parsed = ipaddress.ip_address(address)
    return any(parsed in network for network in trusted if network.version == parsed.version)
