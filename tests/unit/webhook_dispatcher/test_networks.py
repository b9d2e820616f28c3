from __future__ import annotations

from ipaddress import ip_network

from services.webhook_dispatcher.adapters.networks import REFUSED, is_public, parsed
from tests.support.with_each import with_each
from tests.unit.webhook_dispatcher.addresses import LITERAL_FORMS, PUBLIC, REFUSED_ADDRESSES


@with_each(REFUSED_ADDRESSES)
def test_an_address_that_is_not_public_unicast_is_refused(text: str) -> None:
    address = parsed(text)

    assert address is not None
    assert not is_public(address)


@with_each(PUBLIC)
def test_a_public_address_is_taken_even_right_beside_a_refused_network(text: str) -> None:
    address = parsed(text)

    assert address is not None
    assert is_public(address)


@with_each([n for n in REFUSED if ip_network(n).version == 4])
def test_an_ipv4_address_of_a_refused_network_is_refused_in_every_dress_of_ipv6(
    network: str,
) -> None:
    bits = int(ip_network(network)[-1])

    dressed = [
        parsed(f"::{bits >> 16:x}:{bits & 0xFFFF:x}"),
        parsed(f"::ffff:{bits >> 16:x}:{bits & 0xFFFF:x}"),
        parsed(f"64:ff9b::{bits >> 16:x}:{bits & 0xFFFF:x}"),
        parsed(f"2002:{bits >> 16:x}:{bits & 0xFFFF:x}::1"),
        parsed(f"2001:0:4136:e378:8000:63bf:{~bits >> 16 & 0xFFFF:x}:{~bits & 0xFFFF:x}"),
        parsed(f"2a00:1450:4001:81b:0:5efe:{bits >> 16:x}:{bits & 0xFFFF:x}"),
    ]

    assert all(address is not None and not is_public(address) for address in dressed)


@with_each([*(t for t in LITERAL_FORMS if t != "8.8.8.8"), "", " 1.1.1.1", "1.1.1.1\n"], repr)
def test_only_the_canonical_form_of_an_address_is_an_address(text: str) -> None:
    assert text == "::1" or parsed(text) is None
