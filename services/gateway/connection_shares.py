"""How a listener's connections are shared among handshakes, one tenant's writes, and everything else."""

from __future__ import annotations

MOST_COMMANDS_OF_A_TENANT = 4096
"""That wait for a reply, however many connections a process may have."""


def for_handshakes(in_all: int, *, by_tls: bool) -> int:
    """Of a listener's connections, those that may be shaking hands at once."""
    return max(1, in_all // 4) if by_tls else 0


def commands_of_a_tenant(in_all: int, *, by_tls: bool) -> int:
    """How many commands of one tenant may wait for a reply in a process.

    A connection on which one waits is not closed for another caller's: half of those after their handshake are left to
    other tenants.
    """
    after_handshake = in_all - for_handshakes(in_all, by_tls=by_tls)
    return max(1, min(MOST_COMMANDS_OF_A_TENANT, after_handshake // 2))
