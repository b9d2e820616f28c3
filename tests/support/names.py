"""Host names that resolve as a test says, in place of the system's resolver."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any


class Names:
    """A `getaddrinfo` for `Lookups`.

    Args:
        answers: by host name the addresses of each lookup in turn, the last for ever. A name that is not there does not
            resolve.
    """

    def __init__(self, answers: dict[str, list[list[str]]] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []
        self.before: Callable[[str], None] = lambda host: None

    def always(self, host: str, *addresses: str) -> None:
        self.answers[host] = [list(addresses)]

    def __call__(self, host: str, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        self.before(host)
        turns = self.answers.get(host)
        if turns is None:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        return [_info(address) for address in addresses]


def _info(address: str) -> Any:
    bare, _, scope = address.partition("%")
    if ":" in bare:
        return socket.AF_INET6, socket.SOCK_STREAM, 6, "", (bare, 0, 0, int(scope or 0))
    return socket.AF_INET, socket.SOCK_STREAM, 6, "", (bare, 0)
