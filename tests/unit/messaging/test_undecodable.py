"""What pamqp cannot decode arrives all the same. These fail when a release of pamqp decodes in another way."""

from __future__ import annotations

import struct

import pytest
from pamqp import frame
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from libs.messaging import connection  # noqa: F401 - has pamqp tolerate what it cannot decode

HEADERS, MESSAGE_ID, TIMESTAMP, USER_ID = 1 << 13, 1 << 7, 1 << 6, 1 << 4
"""Flags of properties, in whose order their values follow (AMQP 0-9-1, 4.2.6.1)."""
BODY_SIZE = 2
LATEST = (2**64 - 1).to_bytes(8, "big")


def short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def table(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def framed(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def header_of(flags: int, values: bytes) -> ContentHeader:
    payload = struct.pack(">HHQH", Basic.frame_id, 0, BODY_SIZE, flags) + values
    _, _, header = frame.unmarshal(framed(2, payload))
    assert isinstance(header, ContentHeader)
    assert header.body_size == BODY_SIZE
    return header


def nested(depth: int) -> bytes:
    content = b""
    for _ in range(depth):
        content = table(short(b"a") + b"F" + content) if content else table(b"")
    return content


def test_a_message_id_that_is_not_utf_8_is_decoded_with_a_replacement_and_its_sender_stays() -> (
    None
):
    header = header_of(MESSAGE_ID | USER_ID, short(b"evt_\xff") + short(b"payments"))

    assert header.properties.message_id == "evt_\N{REPLACEMENT CHARACTER}"
    assert header.properties.user_id == "payments"


def test_a_timestamp_that_is_no_time_is_none_and_what_follows_it_stays() -> None:
    values = table(short(b"at") + b"T" + LATEST) + LATEST + short(b"payments")

    header = header_of(HEADERS | TIMESTAMP | USER_ID, values)

    assert header.properties.headers == {"at": None}
    assert header.properties.timestamp is None
    assert header.properties.user_id == "payments"


@pytest.mark.parametrize(
    "headers",
    [
        table(short(b"\xff") + b"V"),
        table(short(b"a") + b"?"),
        nested(5_000),
    ],
    ids=["a-name-that-is-not-utf-8", "a-value-of-no-known-kind", "tables-in-tables"],
)
def test_a_message_whose_headers_cannot_be_decoded_has_no_properties(headers: bytes) -> None:
    header = header_of(HEADERS | USER_ID, headers + short(b"payments"))

    assert header.properties == Basic.Properties()


def test_a_routing_key_that_is_not_utf_8_is_decoded_with_a_replacement() -> None:
    method = (
        struct.pack(">HH", 60, 60) + short(b"tag") + bytes(8) + b"\0" + short(b"bankside.events")
    )

    _, _, delivery = frame.unmarshal(framed(1, method + short(b"wire.\xff")))

    assert isinstance(delivery, Basic.Deliver)
    assert delivery.routing_key == "wire.\N{REPLACEMENT CHARACTER}"


def test_what_can_be_decoded_is_decoded_as_before() -> None:
    at = (1_800_000_000).to_bytes(8, "big")

    header = header_of(MESSAGE_ID | TIMESTAMP, short("ü".encode()) + at)

    assert header.properties.message_id == "ü"
    assert header.properties.timestamp is not None
    assert header.properties.timestamp.timestamp() == 1_800_000_000
