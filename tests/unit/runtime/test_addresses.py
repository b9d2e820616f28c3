"""Addresses are counted as what one caller can have."""

from __future__ import annotations

from libs.runtime.addresses import counted_as


def test_hosts_of_one_ipv6_network_are_counted_as_one() -> None:
    assert counted_as("2001:db8:1:2:3:4:5:6") == counted_as("2001:db8:1:2::1") == "2001:db8:1:2::"
    assert counted_as("2001:db8:1:3::1") != counted_as("2001:db8:1:2::1")
    assert counted_as("203.0.113.9") == "203.0.113.9"
    assert counted_as("") == ""


def test_an_ipv4_address_written_as_ipv6_is_counted_as_itself() -> None:
    assert counted_as("::ffff:203.0.113.9") == "203.0.113.9"
    assert counted_as("fe80::1%eth0") == counted_as("fe80::2%eth1") == "fe80::"
    assert counted_as("::1") == "::"
