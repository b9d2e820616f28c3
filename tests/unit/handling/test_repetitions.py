"""A request is known to repeat an earlier one, also once the gateway has another lookup key."""

from __future__ import annotations

import time
from uuid import uuid4

import msgspec
import pytest

from libs.contracts.errors import Abandoned, IdempotencyKeyReused
from libs.contracts.exact_json import encode
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.operation import Operation
from libs.contracts.payments_operations import APPROVE_WIRE, DECLINE_WIRE, SEND_WIRE
from libs.contracts.principal import Family, Principal
from libs.handling.answers import error_reply
from libs.handling.repetitions import NOT_COMPARABLE, refusal_of
from libs.messaging.envelope import Envelope, Reply
from libs.persistence.inbox_acceptance import KnownCommand
from libs.persistence.sealing import LookupKeys
from tests.unit.persistence.keys import a_key

OLD, NEW = f"old:{a_key()}", f"new:{a_key()}"
SENT = b'{"amount": 10, "purpose": "Invoice 2047"}'
PRINCIPAL = Principal("t", "T", Family.CUSTOMER, "sub_1", customer_id="c1")


def hashes(ring: str, sent: bytes) -> tuple[str, ...]:
    return tuple(digest.hex() for digest in LookupKeys(ring).digests("body/1", sent))


def arriving(operation: Operation, ring: str, sent: bytes = SENT, body: bytes = b"{}") -> Envelope:
    first, *earlier = hashes(ring, sent)
    return Envelope(
        id=str(uuid4()),
        message_id="m1",
        request_id="r1",
        operation=operation.name,
        principal=PRINCIPAL,
        deadline=time.time(),
        body=msgspec.Raw(body),
        body_hash=first,
        earlier_body_hashes=tuple(earlier),
    )


def known(ring: str, sent: bytes = SENT, body: bytes = b"") -> KnownCommand:
    reply = encode(Reply(id="c1", to="m1"))
    return KnownCommand(False, hashes(ring, sent)[0], body, reply)


@pytest.mark.parametrize("ring", [OLD, f"{NEW},{OLD}", f"{OLD},{NEW}"])
def test_while_the_key_is_there_bodies_are_compared_by_their_hashes(ring: str) -> None:
    same = refusal_of(arriving(SEND_WIRE, ring), known(OLD))
    other = refusal_of(arriving(SEND_WIRE, ring, b"{}"), known(OLD, body=b"{}"))

    assert same is None
    assert other is not None
    assert other.detail == IdempotencyKeyReused().detail


def test_once_the_key_is_gone_contents_are_compared() -> None:
    first = known(OLD, body=b'{"amount":10,"purpose":"Invoice 2047"}')

    same = refusal_of(
        arriving(SEND_WIRE, NEW, body=b'{"purpose":"Invoice 2047","amount":10.00}'), first
    )
    other = refusal_of(
        arriving(SEND_WIRE, NEW, body=b'{"purpose":"Invoice 2047","amount":10.01}'), first
    )

    assert same is None
    assert other is not None
    assert other.detail == IdempotencyKeyReused().detail


def test_contents_are_compared_without_the_ids_of_the_path() -> None:
    first = known(OLD, body=b'{"transaction_id":"0190ABCD","reason":"not ours"}')

    again = arriving(DECLINE_WIRE, NEW, body=b'{"transaction_id":"0190abcd","reason":"not ours"}')

    assert refusal_of(again, first) is None


def test_what_has_nothing_but_its_path_repeats_the_first_request() -> None:
    again = arriving(APPROVE_WIRE, NEW, body=b'{"transaction_id":"1"}')

    assert refusal_of(again, known(OLD)) is None


@pytest.mark.parametrize(
    ("operation", "stored"), [(SEND_WIRE, b""), (UPDATE_PERSON, encode({"tin": "sealed"}))]
)
def test_what_cannot_be_compared_is_refused_without_a_claim_about_its_body(
    operation: Operation, stored: bytes
) -> None:
    again = arriving(operation, NEW, body=stored or b"{}")

    refusal = refusal_of(again, known(OLD, body=stored))

    assert refusal is not None
    assert refusal.detail == NOT_COMPARABLE


def test_a_command_that_an_operator_abandoned_is_answered_as_such_without_its_body() -> None:
    reply = encode(error_reply("c1", "m1", Abandoned()))
    abandoned = KnownCommand(False, hashes(OLD, SENT)[0], b"", reply)

    assert refusal_of(arriving(SEND_WIRE, NEW), abandoned) is None


def test_a_stored_reply_that_cannot_be_read_does_not_say_that_its_command_was_abandoned() -> None:
    unreadable = KnownCommand(False, hashes(OLD, SENT)[0], b"", b"{")

    refusal = refusal_of(arriving(SEND_WIRE, NEW), unreadable)

    assert refusal is not None
    assert refusal.detail == NOT_COMPARABLE
