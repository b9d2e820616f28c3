"""Where a request comes from, behind proxies too; and what is counted as one caller."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from libs.runtime.addresses import (
    MAX_HOPS,
    UNKNOWN,
    address_of,
    counted_as,
    is_within,
    parse_networks,
)
from tests.support.with_each import with_each

PROXIES = parse_networks("10.0.0.0/8, 2001:db8::/32")


def request(*headers: tuple[str, str], remote: str = "10.0.0.1") -> Any:
    return make_mocked_request("POST", "/", CIMultiDict(headers)).clone(remote=remote)


@with_each(
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.7:51234"], "203.0.113.7"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1:443, 10.0.0.2:80"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db9::7]:51234"], "2001:db9::7"),
        ("10.0.0.1", ["[2001:db9::7]"], "2001:db9::7"),
        ("10.0.0.1", ["[::ffff:203.0.113.7]:1"], "203.0.113.7"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1", "203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        ("2001:db8::1", ["2001:db9::7"], "2001:db9::7"),
        ("::ffff:10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["::ffff:203.0.113.7, ::ffff:10.0.0.2"], "203.0.113.7"),
        ("::ffff:192.0.2.9", ["203.0.113.7"], "192.0.2.9"),
    ]
)
def test_the_address_is_the_last_hop_that_is_no_proxy_of_ours(
    case: tuple[str, list[str], str],
) -> None:
    remote, forwarded, address = case
    headers = [("X-Forwarded-For", value) for value in forwarded]

    assert address_of(request(*headers, remote=remote), PROXIES) == address


def test_of_more_proxies_than_are_followed_the_hop_at_the_bound_counts() -> None:
    hops = [f"10.1.0.{number}" for number in range(1, 2 * MAX_HOPS + 1)]

    address = address_of(request(("X-Forwarded-For", ", ".join(hops))), PROXIES)

    assert address == hops[-MAX_HOPS]


@with_each(
    [
        "nonsense",
        "unknown",
        "",
        "203.0.113.7:port",
        "203.0.113.7:",
        "[203.0.113.7",
        "192.0.2.66, nonsense, 10.0.0.2",
        "1" * 4000,
        "1," * 4000,
        "10.0.0.1" + " " * 4000 + "1",
        "," * 4000,
    ]
)
def test_a_hop_that_is_no_address_is_within_no_network_not_even_the_proxys(hop: str) -> None:
    address = address_of(request(("X-Forwarded-For", hop)), PROXIES)

    assert address == UNKNOWN
    assert not is_within(address, PROXIES)
    assert counted_as(address) == UNKNOWN


def test_without_trusted_proxies_nothing_forwarded_is_believed() -> None:
    forged = request(("X-Forwarded-For", "192.0.2.66"))

    assert address_of(forged, []) == "10.0.0.1"


def test_a_zone_is_no_part_of_an_address() -> None:
    forwarded = request(("X-Forwarded-For", "2001:db8::1%any text"))

    assert address_of(forwarded, PROXIES) == "2001:db8::1"
    assert address_of(request(remote="fe80::1%eth0"), PROXIES) == "fe80::1"


def test_hosts_of_one_ipv6_network_are_counted_as_one() -> None:
    assert counted_as("2001:db8:1:2:3:4:5:6") == counted_as("2001:db8:1:2::1") == "2001:db8:1:2::"
    assert counted_as("2001:db8:1:3::1") != counted_as("2001:db8:1:2::1")
    assert counted_as("203.0.113.9") == "203.0.113.9"
    assert counted_as("") == ""


def test_an_ipv4_address_written_as_ipv6_is_counted_as_itself() -> None:
    assert counted_as("::ffff:203.0.113.9") == "203.0.113.9"
    assert counted_as("fe80::1%eth0") == counted_as("fe80::2%eth1") == "fe80::"
    assert counted_as("::1") == "::"


def test_a_network_of_ipv4_may_be_written_as_ipv6() -> None:
    trusted = parse_networks("::ffff:10.0.0.0/104")

    seen = address_of(
        request(("X-Forwarded-For", "203.0.113.7"), remote="::ffff:10.0.0.1"), trusted
    )

    assert seen == "203.0.113.7"
