"""What an operator may limit a key to: scopes of its family, and networks that its requests come from."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv6Network, ip_network

from libs.contracts.errors import ErrorDetail, Invalid
from libs.contracts.operating.keys import MOST_NETWORKS
from libs.contracts.principal import Family, Scope
from libs.contracts.table import FAMILY_SCOPES

MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6: the gateway sees such a caller by its IPv4 address."""


def wrong_scopes(family: Family, wanted: Collection[Scope], field: str) -> list[ErrorDetail]:
    """The error, at this field of the body, for scopes that are not of the family."""
    allowed = FAMILY_SCOPES[family]
    if foreign := sorted({*wanted} - allowed):
        return error(
            field,
            f"a {family.value}'s key cannot have {', '.join(foreign)}; it can have {', '.join(sorted(allowed))}",
        )
    return []


def wrong_networks(wanted: Collection[str], field: str) -> list[ErrorDetail]:
    """The error, at this field of the body, for what is no network of callers."""
    try:
        networks = [ip_network(text) for text in wanted]
    except ValueError as reason:
        return error(field, f"name networks such as 203.0.113.0/24 or 2001:db8::/32: {reason}")
    # A zone may be any text, also one that cannot be stored, and says nothing about callers.
    if any("%" in text for text in wanted):
        return error(field, "name networks without a zone (`%`)")
    if any(isinstance(network, IPv6Network) and network.subnet_of(MAPPED) for network in networks):
        return error(field, "name IPv4 networks as such, not as IPv6")
    return too_many_networks(networks, field)


def too_many_networks(networks: Collection[object], field: str) -> list[ErrorDetail]:
    if len(networks) > MOST_NETWORKS:
        return error(field, f"a key is limited to at most {MOST_NETWORKS} networks")
    return []


def networks_of(wanted: Collection[str]) -> frozenset[str]:
    """Those in which `wrong_networks` finds no error, in their normal form, as the gateway compares them with the
    addresses of callers.
    """
    return frozenset(str(ip_network(text)) for text in wanted)


def error(field: str, rule: str) -> list[ErrorDetail]:
    """One, at this field of the body."""
    return [{"loc": ["body", field], "msg": rule, "type": "value_error"}]


def refuse(errors: list[ErrorDetail]) -> None:
    """Raises Invalid, with all that is wrong, when anything is."""
    if errors:
        raise Invalid(errors)
