"""The health check of a container asks the service in it, and no replica that shares its name."""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import pytest

from deploy.local.ports import LOOPBACK
from libs.runtime.container_health import is_ready, own_addresses
from tests.support.ports import free_ports

SHARED = "payments-admin"
ELSEWHERE = "192.0.2.1"  # RFC 5737: no machine has it


def resolve(addresses: list[str], host: str, *arguments: Any, **options: Any) -> list[Any]:
    wanted = addresses if host == SHARED else [host]
    return [found for address in wanted for found in REAL(address, *arguments, **options)]


REAL = socket.getaddrinfo


@pytest.mark.parametrize("addresses", [[ELSEWHERE, LOOPBACK], [LOOPBACK, ELSEWHERE]])
def test_of_the_addresses_of_a_shared_name_only_its_own_are_asked(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", partial(resolve, addresses))

    asked = own_addresses(SHARED)

    assert asked == [LOOPBACK]
    with pytest.raises(ConnectionRefusedError):
        is_ready(SHARED, free_ports(1)[0])


def test_a_name_of_other_machines_alone_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", partial(resolve, [ELSEWHERE]))

    assert not is_ready(SHARED, free_ports(1)[0])
