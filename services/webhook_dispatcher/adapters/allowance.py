"""The exception for development, `BANKSIDE_CALLBACK_ALLOW`: where deliveries may go although it is not public.

Entries are separated by commas: `host:port`, `host:*`, or a network as CIDR. A host entry names the host as written in
a callback URL, a name or an address in canonical form, independent of what it resolves to. Only a network entry is
about resolved addresses. An entry allows plain http and any port as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Self

from services.webhook_dispatcher.adapters.callback_targets import is_host_name
from services.webhook_dispatcher.adapters.networks import Address, Network, parsed

_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):(\*|[0-9]{1,5})")


class BadAllowance(ValueError):
    """The setting cannot be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the setting allows. Empty is false.

    Args:
        hosts: names and addresses in lower case, each with its port, or None for all ports.
    """

    hosts: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, setting: str) -> Self:
        """Raises BadAllowance."""
        entries = [entry for item in setting.split(",") if (entry := item.strip())]
        return cls(
            frozenset(_host(entry) for entry in entries if "/" not in entry),
            tuple(_network(entry) for entry in entries if "/" in entry),
        )

    def __bool__(self) -> bool:
        return bool(self.hosts or self.networks)

    def names(self, host: str, port: int) -> bool:
        """Whether a host entry is about this host, as written (in lower case, of IPv6 without brackets)."""
        return (host, port) in self.hosts or (host, None) in self.hosts

    def covers(self, address: Address) -> bool:
        """Whether a network entry has this address. An address with a scope is in no network."""
        if getattr(address, "scope_id", None) is not None:
            return False
        return any(address in network for network in self.networks)


def _network(entry: str) -> Network:
    try:
        return ip_network(entry)
    except ValueError as error:
        raise BadAllowance(f"{entry!r} is not a network: {error}") from None


def _host(entry: str) -> tuple[str, int | None]:
    found = _HOST_AND_PORT.fullmatch(entry)
    if found is None:
        raise BadAllowance(f"{entry!r} is neither host:port, host:* nor a network (10.0.0.0/8)")
    host, port = found[1].lower(), None if found[2] == "*" else int(found[2])
    address = None if "%" in host else parsed(host.strip("[]"))
    if host.startswith("["):
        is_host = address is not None and address.version == 6
    else:
        is_host = address is not None or is_host_name(host)
    if not is_host:
        raise BadAllowance(f"{entry!r} names no host: give a name, or an address in its usual form")
    if port is not None and not 1 <= port <= 65535:
        raise BadAllowance(f"{entry!r} has no port: 1 to 65535, or *")
    return host.strip("[]"), port
