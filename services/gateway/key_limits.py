"""What an operator may limit a key to: scopes of its family, networks that its requests come from, and a time."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Network, ip_network

from libs.client.errors import OperatorError
from libs.contracts.principal import Family, Scope
from libs.contracts.table import FAMILY_SCOPES

MOST_NETWORKS = 100
MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6: the gateway sees such a caller by its IPv4 address."""


def scopes_of(family: Family, wanted: list[str] | None) -> frozenset[Scope]:
    """All of the family's when none is wanted. Raises OperatorError."""
    allowed = FAMILY_SCOPES[family]
    if not wanted:
        return allowed
    foreign = sorted({*wanted} - {*allowed})
    if foreign:
        raise OperatorError(
            f"A {family.value}'s key cannot have {', '.join(foreign)}; it can have {', '.join(sorted(allowed))}."
        )
    return frozenset(map(Scope, wanted))


def networks_of(wanted: list[str] | None) -> frozenset[str]:
    """In their normal form, as the gateway compares them with the addresses of callers. Raises OperatorError."""
    try:
        networks = [ip_network(text) for text in wanted or ()]
    except ValueError as error:
        raise OperatorError(
            f"Name networks such as 203.0.113.0/24 or 2001:db8::/32: {error}."
        ) from None
    if any(isinstance(network, IPv6Network) and network.subnet_of(MAPPED) for network in networks):
        raise OperatorError("Name IPv4 networks as such, not as IPv6.")
    require_few(networks)
    return frozenset(map(str, networks))


def require_few(networks: Collection[object]) -> None:
    """Raises OperatorError."""
    if len(networks) > MOST_NETWORKS:
        raise OperatorError(f"A key is limited to at most {MOST_NETWORKS} networks.")


def expiry_of(text: str | None) -> datetime | None:
    """A date-time, or so many days from now; None for ever. Raises OperatorError."""
    if text is None:
        return None
    if days := re.fullmatch(r"([0-9]{1,5})d", text):
        return datetime.now(UTC) + timedelta(days=int(days[1]))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise OperatorError(
            "--expires takes an ISO 8601 date-time with an offset, such as 2027-01-31T00:00:00Z, or days, such as 30d."
        )
    return at
