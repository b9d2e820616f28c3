"""Addresses of callers: where a request comes from, behind proxies too, and what is counted as one caller."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from aiohttp import web

ADDRESSES_KEPT = 4096
LONGEST_ADDRESS = 45
"""Characters of an IPv6 address that ends as an IPv4 one; a longer text is no address."""
LONGEST_HOP = LONGEST_ADDRESS + len("[]:65535")
UNKNOWN = "unknown"
"""In the place of an address: a trusted proxy does not say where a request came from, or not so that it can be read."""
MAX_HOPS = 32
"""Trusted proxies one behind the other; of more, the hop at the bound counts as the caller."""

_WITH_PORT = re.compile(r"(?:\[([^][]+)\]|([0-9.]+))(?::[0-9]{1,5})?")
"""A hop of X-Forwarded-For as Azure's Application Gateway and IIS write it."""
_IPV4_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(text: str) -> tuple[Network, ...]:
    """Networks separated by commas. Raises ValueError."""
    return tuple(_network(part.strip()) for part in text.split(",") if part.strip())


def address_of(request: web.Request, trusted: Sequence[Network]) -> str:
    """Where the request came from: the last hop that is not a trusted proxy.

    X-Forwarded-For is looked at only behind a trusted proxy, from its end, and no further than `MAX_HOPS`. A hop that
    is no address is `UNKNOWN`, which no network contains: the proxy passes on what another one sent, so that its own
    address must not let a key in.
    """
    address = _address(request.remote or "")
    if address is None or not _is_among(address, trusted):
        return str(address or request.remote or "")
    for hop in itertools.islice(_hops_from_the_last(request), MAX_HOPS):
        next_address = _address_of_hop(hop)
        if next_address is None:
            return UNKNOWN
        address = next_address
        if not _is_among(address, trusted):
            break
    return str(address)


def is_within(address: str, networks: Sequence[Network]) -> bool:
    parsed = _address(address)
    return parsed is not None and _is_among(parsed, networks)


def normal_form(address: str) -> str:
    """As `address_of` has it: an IPv4 address also where it is written as IPv6."""
    return parsed_address(address) or address


def parsed_address(text: str) -> str | None:
    """As `address_of` has it; None when the text is no address."""
    address = _address(text)
    return str(address) if address is not None else None


@lru_cache(maxsize=ADDRESSES_KEPT)
def counted_as(address: str) -> str:
    """What a caller is counted as: its address, or the /64 of an IPv6 host, which can choose among these addresses.

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


def _network(text: str) -> Network:
    """As addresses are compared: one of IPv4 also where it is written as IPv6 (`::ffff:10.0.0.0/104`)."""
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_IPV4_MAPPED):
        first = int(network.network_address) - int(_IPV4_MAPPED.network_address)
        return ipaddress.IPv4Network((first, network.prefixlen - _IPV4_MAPPED.prefixlen))
    return network


def _hops_from_the_last(request: web.Request) -> Iterator[str]:
    """The entries of X-Forwarded-For. A proxy may add a header of its own behind one that the caller made up."""
    for value in reversed(request.headers.getall("X-Forwarded-For", ())):
        rest: str | None = value
        while rest is not None:
            before, comma, hop = rest.rpartition(",")
            yield hop.strip()
            rest = before if comma else None


def _address_of_hop(hop: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Without its port."""
    match = _WITH_PORT.fullmatch(hop) if len(hop) <= LONGEST_HOP else None
    return _address(hop if match is None else match[1] or match[2])


def _is_among(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: Sequence[Network]
) -> bool:
    return any(address in network for network in networks)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, an IPv4 one also where it is written as IPv6; None when it is none."""
    return _parsed(text) if len(text) <= LONGEST_ADDRESS else None


@lru_cache(maxsize=ADDRESSES_KEPT)  # parsing one takes 2 µs, and callers come again
def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # A zone (`%eth0`) says something on its own machine only, and may be any text.
    return address.ipv4_mapped or ipaddress.IPv6Address(int(address))
