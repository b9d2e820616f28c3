"""The ports that callers use are looked at before anything is started, all of them at once."""

from __future__ import annotations

import socket

import pytest

from deploy.local.ports import LOOPBACK
from deploy.local.services import SERVICES, stack_settings
from deploy.local.state import Remembered
from deploy.local.up import check_ports
from libs.client.errors import OperatorError
from tests.support.ports import free_ports


def settings(**chosen: int) -> dict[str, str]:
    """Of a stack whose ports are free, but for those that are chosen."""
    remembered = Remembered.new()
    secrets = remembered.secrets
    *public, operator = free_ports(len(SERVICES) + 1)
    made = stack_settings(
        secrets=secrets,
        database_urls=secrets.role_passwords,
        amqp_url="amqp://broker",
        amqp_urls=secrets.amqp_passwords,
        public_ports={s.name: port for s, port in zip(SERVICES, public, strict=True)},
        operator_port=operator,
        admin_ports=remembered.ports,
    )
    return made | {f"BANKSIDE_{name}_PORT": str(port) for name, port in chosen.items()}


def test_free_ports_are_taken() -> None:
    check_ports(settings())


def test_one_port_for_two_is_told_by_both_names() -> None:
    [port] = free_ports(1)

    with pytest.raises(OperatorError) as raised:
        check_ports(settings(GATEWAY=port, GATEWAY_OPERATOR=port))

    said = f"Port {port} of the gateway for operators is that of the gateway."
    assert str(raised.value).startswith(said)
    assert "`BANKSIDE_GATEWAY_OPERATOR_PORT=" in str(raised.value)


def test_all_ports_that_are_in_use_are_told_at_once() -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as first,
        socket.create_server((LOOPBACK, 0)) as second,
    ):
        ports = [server.getsockname()[1] for server in (first, second)]

        with pytest.raises(OperatorError) as raised:
            check_ports(settings(GATEWAY=ports[0], CONSOLE=ports[1]))

    said = str(raised.value)
    assert f"ort {ports[0]} of the gateway cannot be used" in said
    assert f"ort {ports[1]} of the console cannot be used" in said
    assert "BANKSIDE_GATEWAY_PORT=" in said
    assert "BANKSIDE_CONSOLE_PORT=" in said
