"""What an operator may limit a key to: scopes of its family, and networks that its requests come from."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv6Network, ip_network
from typing import NoReturn

from libs.contracts.errors import Invalid
from libs.contracts.operating.keys import MOST_NETWORKS
from libs.contracts.principal import Family, Scope
from libs.contracts.table import FAMILY_SCOPES

MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6: the gateway sees such a caller by its IPv4 address."""


def scopes_of(family: Family, wanted: Collection[Scope], field: str) -> frozenset[Scope]:
    """Raises Invalid, at this field of the body: one is not of the family."""
    allowed = FAMILY_SCOPES[family]
    if foreign := sorted({*wanted} - allowed):
        refuse(
            field,
            f"a {family.value}'s key cannot have {', '.join(foreign)}; it can have {', '.join(sorted(allowed))}",
        )
    return frozenset(wanted)


def networks_of(wanted: Collection[str], field: str) -> frozenset[str]:
    """In their normal form, as the gateway compares them with the addresses of callers.

    Raises:
        Invalid: at this field of the body.
    """
    try:
        networks = [ip_network(text) for text in wanted]
    except ValueError as error:
        refuse(field, f"name networks such as 203.0.113.0/24 or 2001:db8::/32: {error}")
    # A zone may be any text, also one that cannot be stored, and says nothing about callers.
    if any("%" in text for text in wanted):
        refuse(field, "name networks without a zone (`%`)")
    if any(isinstance(network, IPv6Network) and network.subnet_of(MAPPED) for network in networks):
        refuse(field, "name IPv4 networks as such, not as IPv6")
    require_few(networks, field)
    return frozenset(map(str, networks))


def require_few(networks: Collection[object], field: str) -> None:
    """Raises Invalid."""
    if len(networks) > MOST_NETWORKS:
        refuse(field, f"a key is limited to at most {MOST_NETWORKS} networks")


def refuse(field: str, rule: str) -> NoReturn:
    """Raises Invalid, at this field of the body."""
    raise Invalid([{"loc": ["body", field], "msg": rule, "type": "value_error"}])
