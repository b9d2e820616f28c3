from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from services.provider_sandbox.encoding import NotJson, canonical, decode, encode, instant, money
from tests.support.with_each import with_each


def test_a_number_comes_out_digit_for_digit() -> None:
    data = b'{"amount":1234567890123456.78,"share":33.30}'

    assert encode(decode(data)) == data


def test_a_number_as_long_as_the_interface_takes_is_taken() -> None:
    share = "0." + 63 * "0" + 59 * "1"  # 1.11…e-64, in 64 characters, written without an exponent

    assert decode(f'{{"share":{share}}}'.encode()) == {"share": Decimal(share)}


@with_each(
    [
        b"{",
        b"",
        b"NaN",
        b'"\\ud800"',
        b'"\xff"',
        b'{"a":"\\u0000"}',
        b'{"\\u0000":1}',
        b"1E400",
        b"1." + b"1" * 130,
        b"1E-65",
        b"[" * 33 + b"]" * 33,
        b"[" * 100_000,
    ],
    lambda data: f"{data[:12]!r} of {len(data)}",
)
def test_what_the_bank_cannot_keep_is_not_taken(data: bytes) -> None:
    with pytest.raises(NotJson):
        decode(data)


def test_objects_are_the_same_in_whatever_order_their_keys_come() -> None:
    assert canonical({"a": 1, "b": {"c": Decimal("1.0"), "d": 2}}) == canonical(
        {"b": {"d": 2, "c": Decimal("1.0")}, "a": 1}
    )


def test_money_has_two_places_and_time_has_microseconds() -> None:
    new_york = timezone(timedelta(hours=-5))

    assert money(Decimal(1000)) == "1000.00"
    assert instant(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"
    assert instant(datetime(2026, 1, 1, 23, tzinfo=new_york)) == "2026-01-02T04:00:00.000000Z"
