"""Where a request comes from, and what of its headers is believed."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from libs.contracts.principal import Family, Principal
from libs.runtime.process import Misconfigured
from services.gateway.endpoint import trusted_networks
from services.gateway.requests import MAX_HOPS, address_of, command_id_of, request_id_of

PROXIES = trusted_networks("10.0.0.0/8, 2001:db8::/32")
PARTNER = Principal("tenant", "Tenant", Family.PARTNER, "sub_1")


def request(
    *headers: tuple[str, str], remote: str = "10.0.0.1", target: str = "/a", method: str = "POST"
) -> Any:
    made = make_mocked_request(method, target, CIMultiDict(headers))
    return made.clone(remote=remote)


@pytest.mark.parametrize(
    ("remote", "forwarded", "address"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("2001:db8::1", ["2001:db9::7"], "2001:db9::7"),
    ],
)
def test_the_address_is_the_last_hop_that_is_no_proxy_of_ours(
    remote: str, forwarded: list[str], address: str
) -> None:
    headers = [("X-Forwarded-For", value) for value in forwarded]

    assert address_of(request(*headers, remote=remote), PROXIES) == address


def test_of_more_proxies_than_are_followed_the_hop_at_the_bound_counts() -> None:
    hops = [f"10.1.0.{number}" for number in range(1, 2 * MAX_HOPS + 1)]

    address = address_of(request(("X-Forwarded-For", ", ".join(hops))), PROXIES)

    assert address == hops[-MAX_HOPS]


@pytest.mark.parametrize(
    "forged", ["1" * 4000, "1," * 4000, "10.0.0.1" + " " * 4000, "," * 4000], ids=lambda f: f[:2]
)
def test_what_is_no_list_of_addresses_ends_where_it_begins(forged: str) -> None:
    assert address_of(request(("X-Forwarded-For", forged)), PROXIES) == "10.0.0.1"


def test_without_trusted_proxies_nothing_forwarded_is_believed() -> None:
    forged = request(("X-Forwarded-For", "192.0.2.66"))

    assert address_of(forged, []) == "10.0.0.1"


def test_a_trusted_proxy_that_is_no_network_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(Misconfigured, match="BANKSIDE_GATEWAY_TRUSTED_PROXIES"):
        trusted_networks("the proxy")


def test_a_request_id_is_kept_when_it_is_one_and_made_otherwise() -> None:
    assert request_id_of(request(("X-Request-Id", "a~!"))) == "a~!"
    for sent in ("", "a b", "é", "x" * 129, "a\tb"):
        assert uuid.UUID(request_id_of(request(("X-Request-Id", sent)))).version == 7


def test_a_key_names_one_command_of_tenant_customer_method_and_path_as_sent() -> None:
    customer = Principal("tenant", "Tenant", Family.CUSTOMER, "sub_2", str(uuid.uuid4()))
    other_tenant = Principal("tenant2", "Tenant", Family.PARTNER, "sub_3")
    same = [
        command_id_of(PARTNER, request(target="/a"), "key"),
        command_id_of(PARTNER, request(target="/a?b=1"), "key"),
        command_id_of(
            Principal("tenant", "?", Family.PARTNER, "sub_9"), request(target="/a"), "key"
        ),
    ]
    others = [
        command_id_of(PARTNER, request(target="/a"), "key2"),
        command_id_of(PARTNER, request(target="/b"), "key"),
        command_id_of(PARTNER, request(target="/%61"), "key"),
        command_id_of(PARTNER, request(target="/a", method="PATCH"), "key"),
        command_id_of(customer, request(target="/a"), "key"),
        command_id_of(other_tenant, request(target="/a"), "key"),
    ]

    assert len(set(same)) == 1
    assert same[0].version == 5
    assert len({same[0], *others}) == 7


def test_a_zone_is_no_part_of_an_address() -> None:
    forwarded = request(("X-Forwarded-For", "2001:db8::1%any text"))

    assert address_of(forwarded, PROXIES) == "2001:db8::1"
    assert address_of(request(remote="fe80::1%eth0"), PROXIES) == "fe80::1"
