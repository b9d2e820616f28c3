"""The ports that callers use are looked at before anything is started, all of them at once."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import pytest

from deploy.local.ports import LOOPBACK, is_free, local_url
from deploy.local.services import SERVICES, admin_address, stack_settings
from deploy.local.state import Remembered
from deploy.local.up import check_ports
from libs.client.errors import OperatorError
from tests.support.ports import free_ports


def settings(hosts: Mapping[str, str] = {}, **chosen: int) -> dict[str, str]:
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
        hosts=hosts,
    )
    ports = {f"BANKSIDE_{name}_PORT": str(port) for name, port in chosen.items()}
    return {**made, **hosts, **ports}


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


def test_a_port_of_another_address_family_is_looked_at_there() -> None:
    if not socket.has_ipv6 or not is_free(0, "::1"):
        pytest.skip("this machine has no IPv6")

    [port] = free_ports(1)
    with socket.create_server(("::1", port), family=socket.AF_INET6):
        assert not is_free(port, "::1")
        assert not is_free(port, "::")
        assert is_free(port, LOOPBACK)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (LOOPBACK, "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("10.1.2.3", "http://10.1.2.3:8080"),
        ("::", "http://[::1]:8080"),
        ("fd00::1", "http://[fd00::1]:8080"),
    ],
)
def test_a_server_is_reached_where_it_listens(host: str, url: str) -> None:
    assert local_url(host, 8080) == url


def test_services_are_reached_where_the_operator_has_them_listen() -> None:
    names = ("GATEWAY_OPERATOR", "SANDBOX", "ADMIN")
    made = settings({f"BANKSIDE_{name}_HOST": "10.1.2.3" for name in names})

    for name in ("CONSOLE_OPERATOR_URL", "CORE_URL", "SANDBOX_PUBLIC_URL"):
        assert made[f"BANKSIDE_{name}"].startswith("http://10.1.2.3:")
    assert {admin_address(service, made)[0] for service in SERVICES} == {"10.1.2.3"}
    payments = next(service for service in SERVICES if service.name == "payments")
    apart = made | {"BANKSIDE_PAYMENTS_ADMIN_HOST": LOOPBACK}
    assert admin_address(payments, apart)[0] == LOOPBACK
