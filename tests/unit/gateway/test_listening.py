"""The sockets that the gateway's parent process holds for its children."""

from __future__ import annotations

import os
import socket

from deploy.local.ports import LOOPBACK
from libs.runtime.accepting import addresses_of
from services.gateway.listening import ChildSockets
from tests.support.ports import free_ports

CONNECTIONS = 64
SECONDS = 5.0


def listening_child(sockets: ChildSockets) -> socket.socket:
    """A child's own descriptor of its socket, on which it listens."""
    [descriptor] = sockets.descriptors
    child = socket.socket(fileno=os.dup(descriptor))
    child.listen(CONNECTIONS)
    return child


async def test_connections_wait_while_a_child_is_replaced() -> None:
    [port] = free_ports(1)
    sockets = ChildSockets(await addresses_of(LOOPBACK, port))
    listening_child(sockets).close()

    with socket.create_connection((LOOPBACK, port), SECONDS) as caller:
        with listening_child(sockets) as replacement:
            replacement.settimeout(SECONDS)
            accepted, peer = replacement.accept()
            accepted.close()
        assert peer == caller.getsockname()
    sockets.close()


async def test_the_other_children_are_given_the_connections_of_one_that_died() -> None:
    [port] = free_ports(1)
    addresses = await addresses_of(LOOPBACK, port)
    dying, living = ChildSockets(addresses), ChildSockets(addresses)
    listening_child(dying).close()

    dying.renew()

    with listening_child(living) as child:
        child.settimeout(SECONDS)
        for _ in range(CONNECTIONS):
            with socket.create_connection((LOOPBACK, port), SECONDS) as caller:
                accepted, peer = child.accept()
                accepted.close()
                assert peer == caller.getsockname()
    with listening_child(dying):  # its next life
        pass
    dying.close()
    living.close()
