"""TCP ports of this machine: free ones, who holds a busy one, and how one is reached. Linux."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LOWEST = 15000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LISTENING = "0A"
_ALL_INTERFACES = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - nothing is bound by it
"""The loopback address on which a server is reached that listens on all interfaces."""


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # as the services listen
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True


def reached_at(host: str) -> str:
    """The address by which this machine reaches a server of its own that listens on `host`."""
    return _ALL_INTERFACES.get(host, host)


def local_url(host: str, port: int | str) -> str:
    """The URL by which this machine reaches a server of its own that listens there."""
    address = reached_at(host)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def lasting_ports() -> range:
    """Ports that no outgoing connection can be given."""
    highest = 32767
    with contextlib.suppress(OSError, ValueError):
        highest = max(_LOWEST + 1000, int(_EPHEMERAL_RANGE.read_text().split()[0]) - 1)
    return range(_LOWEST, highest + 1)


def drawn_ports() -> range:
    """The quarter of the lasting ports from which `free_ports` draws; the others are for ports that are configured."""
    ports = lasting_ports()
    return ports[-(len(ports) // 4) :]


def free_ports(count: int) -> list[int]:
    """Different ports that are free now, and that no outgoing connection can be given in the meantime."""
    ports = drawn_ports()
    candidates = random.SystemRandom().sample(ports, min(1000, len(ports)))
    found = [port for port in candidates[: 50 * count] if is_free(port)][:count]
    if len(found) < count:
        raise OSError(f"no {count} free TCP ports between {ports[0]} and {ports[-1]}")
    return found


def holder_of(port: int) -> str | None:
    """The process that listens on `port`, like `nginx (pid 812)`; None when it is not ours to see."""
    inodes = {
        f"socket:[{fields[9]}]"
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        if table.exists()
        for fields in (line.split() for line in table.read_text().splitlines()[1:])
        if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port
    }
    for process in Path("/proc").glob("[0-9]*"):
        # Processes end while we look, and those of others may not be looked into.
        with contextlib.suppress(OSError):
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
    return None
