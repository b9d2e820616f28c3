"""Numbers keep every digit, and what parsers usually let pass is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.contracts.customers import MAX_PERSONS
from libs.contracts.exact_json import NotExactJson, decode, decode_request, encode
from tests.support import people
from tests.support.with_each import with_each

numbers = st.one_of(
    st.integers(min_value=-(10**40), max_value=10**40),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**20), max_value=10**20
    ),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent),
        st.integers(min_value=-(10**18), max_value=10**18),
        st.integers(min_value=-30, max_value=30),
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.text(st.characters(exclude_categories=["Cs"])), numbers),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    ),
    max_leaves=20,
)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(values)
def test_what_is_written_is_read_back_exactly_by_both_readers(value: Any) -> None:
    text = encode(value)

    assert decode(text) == value
    assert decode_request(text) == value


@given(numbers)
def test_no_digit_of_a_number_is_lost_on_the_way_in_and_out(number: int | Decimal) -> None:
    text = str(number).encode()

    read = decode_request(text)

    assert not isinstance(read, float)
    assert Decimal(read) == Decimal(number)
    assert Decimal(encode(read).decode()) == Decimal(number)


def test_an_amount_that_no_float_can_hold_comes_out_as_the_same_text() -> None:
    assert encode(decode(encode(decode_request(b"1234567890123456.78")))) == b"1234567890123456.78"


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(), min_size=1)
)
def test_an_object_with_a_key_twice_is_refused_wherever_it_stands(members: dict[str, int]) -> None:
    inside = json.dumps(members)[1:-1]
    text = f'{{"outer": [{{{inside}, {inside}}}]}}'.encode()

    with pytest.raises(NotExactJson, match="duplicate"):
        decode_request(text)


def test_keys_that_are_equal_only_when_unescaped_are_duplicates() -> None:
    with pytest.raises(NotExactJson, match="duplicate"):
        decode_request(rb'{"tin": 1, "t\u0069n": 2}')


def test_depth_32_is_read_and_depth_33_is_not() -> None:
    assert decode_request(nested(32))
    assert decode_request(b'{"a":' * 32 + b"1" + b"}" * 32)
    for too_deep in (nested(33), b'{"a":' * 33 + b"1" + b"}" * 33, nested(900)):
        with pytest.raises(NotExactJson, match="nested deeper than 32"):
            decode_request(too_deep)
    with pytest.raises(NotExactJson):
        decode_request(nested(100_000))


def test_a_thousand_members_and_items_are_read_and_one_more_is_not() -> None:
    names = ",".join(f'"{number}":"{{,,[{number}"' for number in range(498)).encode()

    for one_less in (b"[" + b"0," * 999 + b"0]", b'{"a":[' + b"0," * 500 + b"0]," + names + b"}"):
        assert decode_request(one_less)
        with pytest.raises(NotExactJson, match="more than 1000 members"):
            decode_request(one_less.replace(b"0,", b"0,0,", 1))


def test_members_suffice_for_three_of_the_longest_application() -> None:
    longest = people.application(persons=[people.person() for _ in range(MAX_PERSONS)])

    assert decode_request(json.dumps([longest] * 3).encode())


def test_what_looks_like_members_within_a_string_is_text() -> None:
    for text in (",[{" * 2000, '\\",' * 2000, "\\\\," * 2000, '\\\\\\",' * 2000):
        assert decode_request(json.dumps({"a": text}).encode()) == {"a": text}


def test_strings_that_cannot_all_be_members_are_too_many() -> None:
    for body in (
        b'["' + b'","' * 80_000 + b'"]',
        b"[" + b'"",' * 80_000,
        b'"' * 200_000 + b"," * 1001,
    ):
        with pytest.raises(NotExactJson, match="more than 1000 members"):
            decode_request(body)


@with_each(
    [
        ("not a number", b"NaN"),
        ("infinity", b'{"a": Infinity}'),
        ("minus infinity", b"[-Infinity]"),
        ("an exponent beyond bounds", b"1E400"),
        ("a negative exponent beyond bounds", b"1E-400"),
        ("a whole number with too many digits", b"9" * 65),
        ("a fraction with too many digits", b"0." + b"9" * 64),
        ("a lone surrogate", rb'"\ud800"'),
        ("a lone surrogate in a key", rb'{"\udfff": 1}'),
        ("not UTF-8", b'"\xff"'),
        ("a byte order mark", b"\xef\xbb\xbf{}"),
        ("UTF-16", '"€"'.encode("utf-16")),
        ("two texts", b"{} {}"),
        ("a raw control character", b'"a\nb"'),
        ("single quotes", b"{'a': 1}"),
        ("a leading zero", b"01"),
        ("nothing", b""),
    ],
    lambda case: case[0],
)
def test_what_is_not_exact_json_is_refused(case: tuple[str, bytes]) -> None:
    _, body = case

    with pytest.raises(NotExactJson):
        decode_request(body)


def test_a_pair_of_surrogates_is_the_one_character_that_it_means() -> None:
    assert decode_request(rb'"\ud83d\ude00"') == "😀"


def test_the_refusal_never_quotes_the_body() -> None:
    with pytest.raises(NotExactJson) as refusal:
        decode_request(b'{"tin": "123456789", }')

    assert "123456789" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", [b"[1E400]", b"[" + b"9" * 70 + b".5]", b"{", b'"\xff"', b"[" * 9999]
)
def test_the_reader_of_our_own_messages_fails_in_one_way_only(text: bytes) -> None:
    with pytest.raises(NotExactJson):
        decode(text)


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?", fullmatch=True)
)
def test_what_a_request_may_carry_is_read_back_as_a_database_writes_it(text: str) -> None:
    """PostgreSQL's jsonb writes numbers without an exponent."""
    try:
        number = decode_request(f"[{text}]".encode())[0]
    except NotExactJson:
        return

    [stored] = decode(f"[{format(Decimal(number), 'f')}]")

    assert stored == number


@pytest.mark.parametrize("text", ["1e-63", "0.5e-62", f"0.{'1' * 62}", f"1.{'1' * 58}e-64"])
def test_the_smallest_numbers_survive_being_written_without_an_exponent(text: str) -> None:
    [number] = decode_request(f"[{text}]".encode())

    assert decode(f"[{number:f}]") == [number]


def test_more_digits_than_any_of_ours_are_refused() -> None:
    with pytest.raises(NotExactJson):
        decode(f"[0.{'0' * 129}1]")
