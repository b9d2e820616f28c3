"""Addresses of callers as they are counted."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

ADDRESSES_KEPT = 4096


@lru_cache(maxsize=ADDRESSES_KEPT)
def counted_as(address: str) -> str:
    """The address failures are counted under: an IPv6 host can choose among its /64.

    An IPv4 address that is written as IPv6 counts as itself: all of these are in one /64.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    # By its number: a zone (`%eth0`) may be any text.
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False).network_address)
