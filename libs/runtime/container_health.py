"""The health check of a container: ends with 0 when the service in it is ready, else with a sentence.

    python -m libs.runtime.container_health

Replicas share the name on which their admin ports listen, and a client that finds one address closed goes on to the
next: it would be answered by another replica. So only addresses of this machine are asked, and without a proxy, which
Docker may give its containers. Nothing but the standard library is imported: it runs every few seconds.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
from http import HTTPStatus

SECONDS = 4.0


def own_addresses(host: str) -> list[str]:
    """The addresses of `host` that are this machine's. Raises OSError where it has none at all."""
    found = []
    for family, kind, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
        with socket.socket(family, kind) as probe:
            try:
                probe.bind(address)
            except OSError:
                continue  # another machine's
        found.append(str(address[0]))
    return found


def is_ready(host: str, port: int) -> bool:
    """Whether the service of this machine answers `/ready` with 200. Raises OSError or HTTPException."""
    for address in own_addresses(host):
        connection = http.client.HTTPConnection(address, port, timeout=SECONDS)
        connection.request("GET", "/ready")
        return connection.getresponse().status == HTTPStatus.OK
    return False


if __name__ == "__main__":
    try:
        ready = is_ready(os.environ["BANKSIDE_ADMIN_HOST"], int(os.environ["BANKSIDE_ADMIN_PORT"]))
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"It does not answer: {error}")
    sys.exit(None if ready else "It is not ready.")
