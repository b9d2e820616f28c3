"""JSON in which a number that is money keeps every digit: never a float on the way in or out.

Requests are read with `decode_request`, which refuses what parsers usually let pass (duplicate keys, NaN, depth, lone
surrogates, more members than a request can need). What our own processes and providers send is read with `decode`,
which is faster.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NoReturn

import msgspec

MAX_DEPTH = 32
MAX_MEMBERS = 1000
"""Of all objects and lists of a request together. The longest body of the contract, an application with ten persons,
has 284; a text of 256 KiB can have 130,000, which would hold up a process for a tenth of a second.
"""
MAX_NUMBER_CHARACTERS = 64
MAX_EXPONENT = 64
MAX_PLAIN_CHARACTERS = MAX_NUMBER_CHARACTERS + MAX_EXPONENT + 2
"""PostgreSQL gives back such a number of a JSON column without its exponent: 1e-64 as 0.00…1."""

encoder = msgspec.json.Encoder(decimal_format="number")
"""Decimals become numbers; dates, date-times and UUIDs become strings."""

encode = encoder.encode


class NotExactJson(ValueError):
    """The text is not JSON as this interface takes it; the message says why, without quoting it."""


def exact_number(text: str, most_characters: int = MAX_NUMBER_CHARACTERS) -> Decimal:
    """A JSON number with a fraction or exponent, exact. Bounded, so that `1E999999` cannot be made to fill memory."""
    if len(text) > most_characters:
        raise NotExactJson("a number has too many digits")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise NotExactJson("a number is not valid") from None
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise NotExactJson("a number has too large an exponent")
    return number


own_number = partial(exact_number, most_characters=MAX_PLAIN_CHARACTERS)
"""A number that a process of ours has written or stored."""

_decoder = msgspec.json.Decoder(float_hook=own_number)


def decode(data: bytes | str) -> Any:
    """Read JSON of a process of ours or of a provider.

    Raises:
        NotExactJson: the text is not JSON, nests too deep, or holds a number out of bounds.
    """
    try:
        return _decoder.decode(data)
    except RecursionError:
        raise NotExactJson("nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotExactJson("not valid JSON") from error


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotExactJson("an object has a duplicate key")
    return result


def _whole_number(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise NotExactJson("a number has too many digits")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise NotExactJson(f"{name} is not JSON")


def _check(value: Any, depth: int) -> None:
    match value:
        case str():
            if not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise NotExactJson("a string has a lone surrogate") from None
        case dict():
            if depth == MAX_DEPTH:
                raise NotExactJson(f"nested deeper than {MAX_DEPTH}")
            for key, item in value.items():
                _check(key, depth + 1)
                _check(item, depth + 1)
        case list():
            if depth == MAX_DEPTH:
                raise NotExactJson(f"nested deeper than {MAX_DEPTH}")
            for item in value:
                _check(item, depth + 1)
        case _:
            pass


def _has_too_many_members(body: bytes) -> bool:
    """Whether there are more than `MAX_MEMBERS` in a JSON text, in which an empty object or list counts as one more.

    Its time is linear, unlike that of a regular expression on a text with quotes that do not end.
    """
    if _members(body) <= MAX_MEMBERS:
        return False
    # Perhaps most of them are within strings.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * (MAX_MEMBERS + 1):  # of a name and a string for each member
        return True
    return _members(b"".join(unescaped.split(b'"')[::2])) > MAX_MEMBERS


def _members(text: bytes) -> int:
    """Those of a JSON text without strings: each but the first of an object or list has a comma before it."""
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def decode_request(body: bytes) -> Any:
    """Read the body of a caller's request (interface §2).

    Raises:
        NotExactJson: not UTF-8, not JSON, a duplicate key, NaN or Infinity, nested deeper than 32, more than 1,000
            members, or a number out of bounds.
    """
    if body.startswith(BOM_UTF8):
        raise NotExactJson("it begins with a byte order mark")
    if _has_too_many_members(body):
        raise NotExactJson(f"more than {MAX_MEMBERS} members and items")
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_pairs,
            parse_float=exact_number,
            parse_int=_whole_number,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise NotExactJson(f"nested deeper than {MAX_DEPTH}") from None
    except UnicodeDecodeError:
        raise NotExactJson("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotExactJson(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    _check(value, 0)
    return value
