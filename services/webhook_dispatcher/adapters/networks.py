"""Which addresses are public unicast: our own table of those that are not (interface §8).

From the IANA registries of special-purpose addresses, and what of other origin leads inwards: forms of IPv6 that carry
an IPv4 address, prefixes that were given back, and Azure's host agent. `ipaddress.is_global` is no such rule: it takes
multicast, NAT64, 6to4 and IPv4-compatible addresses for global.
"""

from __future__ import annotations

from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

REFUSED: Final[dict[str, str]] = {
    "0.0.0.0/8": "this host on this network (RFC 791)",
    "10.0.0.0/8": "private (RFC 1918)",
    "100.64.0.0/10": "shared, carrier-grade NAT (RFC 6598)",
    "127.0.0.0/8": "loopback (RFC 1122)",
    "168.63.129.16/32": "Azure's host agent, reached from inside only",
    "169.254.0.0/16": "link-local (RFC 3927), and the metadata of clouds",
    "172.16.0.0/12": "private (RFC 1918)",
    "192.0.0.0/24": "protocol assignments (RFC 6890)",
    "192.0.2.0/24": "documentation (RFC 5737)",
    "192.31.196.0/24": "AS112 (RFC 7535)",
    "192.52.193.0/24": "AMT relays (RFC 7450)",
    "192.88.99.0/24": "6to4 relays, given up (RFC 7526)",
    "192.168.0.0/16": "private (RFC 1918)",
    "192.175.48.0/24": "AS112 (RFC 7534)",
    "198.18.0.0/15": "benchmarking (RFC 2544)",
    "198.51.100.0/24": "documentation (RFC 5737)",
    "203.0.113.0/24": "documentation (RFC 5737)",
    "224.0.0.0/4": "multicast (RFC 5771)",
    "240.0.0.0/4": "reserved (RFC 1112), and broadcast",
    "::/96": "unspecified, loopback, and IPv4-compatible (RFC 4291)",
    "::ffff:0:0/96": "IPv4-mapped (RFC 4291)",
    "::ffff:0:0:0/96": "IPv4-translated (RFC 2765)",
    "64:ff9b::/96": "NAT64 (RFC 6052)",
    "64:ff9b:1::/48": "NAT64 of a local network (RFC 8215)",
    "100::/64": "discard only (RFC 6666)",
    "100:0:0:1::/64": "dummy prefix (RFC 9780)",
    "2001::/23": "protocol assignments (RFC 2928): Teredo, benchmarking, ORCHID",
    "2001:db8::/32": "documentation (RFC 3849)",
    "2002::/16": "6to4 (RFC 3056)",
    "2620:4f:8000::/48": "AS112 (RFC 7534)",
    "3ffe::/16": "6bone, given back (RFC 3701)",
    "3fff::/20": "documentation (RFC 9637)",
    "5f00::/16": "segment routing (RFC 9602)",
    "fc00::/7": "unique local (RFC 4193)",
    "fe80::/10": "link-local (RFC 4291)",
    "fec0::/10": "site-local (RFC 3879)",
    "ff00::/8": "multicast (RFC 4291)",
}
"""Networks that no delivery goes to. Of IPv6, nothing outside of 2000::/3 is public, whether it is listed or not."""

_NETWORKS: Final[tuple[Network, ...]] = tuple(ip_network(network) for network in REFUSED)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = 0x5EFE
"""The upper half of an interface identifier that carries an IPv4 address (RFC 5214), within any prefix."""
_ISATAP_MASK: Final = 0xFCFFFFFF
"""Without the bits that say universal and group."""


def is_public(address: Address) -> bool:
    """Whether an address is public unicast. One with a scope is not: a scope is a link of this machine."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None or address not in _GLOBAL_UNICAST:
            return False
        if (int(address) >> 32) & _ISATAP_MASK == _ISATAP:
            return False
    return not any(address in network for network in _NETWORKS)


def parsed(text: str) -> Address | None:
    """The address that a text is in its canonical form, four decimal numbers or IPv6; None for everything else.

    Never the short, octal, hexadecimal or single-number forms that the C library takes for an address as well.
    """
    try:
        return ip_address(text)
    except (AddressValueError, ValueError):
        return None
