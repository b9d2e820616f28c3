"""What is stored of a command may be of another release, or broken: it is read, or it is None."""

from __future__ import annotations

import msgspec
import pytest

from libs.contracts.principal import Family, Principal
from libs.handling.stored_commands import principal_of, reply_of
from libs.messaging.envelope import Reply, encode

PRINCIPAL = Principal("acme", "Acme", Family.CUSTOMER, "sub_1", customer_id="c1")
REPLY = Reply(id="c1", to="m1")
UNREADABLE = {
    "nothing": b"",
    "no JSON": b"{",
    "not UTF-8 in a text": b'{"id":"\xff","to":"m1","tenant":"\xff"}',
    "not UTF-8 at all": b"\xff\xfe",
    "of another shape": b'{"id":7,"tenant":7}',
    "no object": b"[]",
}


def test_what_this_release_stores_it_reads() -> None:
    assert principal_of(msgspec.json.encode(PRINCIPAL)) == PRINCIPAL
    assert reply_of(encode(REPLY)) == REPLY


@pytest.mark.parametrize("stored", UNREADABLE.values(), ids=[*UNREADABLE])
def test_what_cannot_be_read_is_none(stored: bytes) -> None:
    assert principal_of(stored) is None
    assert reply_of(stored) is None
