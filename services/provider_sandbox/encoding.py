"""JSON, money and time as the bank's APIs write them.

Numbers never pass through a float: fractions are decoded as Decimal and written digit for digit. Money in the APIs is
a decimal string with two places; date-times are UTC with microseconds and `Z`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import msgspec

MAX_EXPONENT = 64
MAX_CHARACTERS = 130
"""Of a number: Bankside takes 64 and an exponent within ±64, which are up to 130 where it is written without one."""
MAX_DEPTH = 32


class NotJson(Exception):
    """The bytes are no JSON that the bank takes; the message says why, without quoting them."""


def _exact(digits: str) -> Decimal:
    number = Decimal(digits)
    if len(digits) > MAX_CHARACTERS or abs(number.adjusted()) > MAX_EXPONENT:
        raise NotJson("a number is too large or has too many digits")
    return number


_decoder = msgspec.json.Decoder(float_hook=_exact)
_encoder = msgspec.json.Encoder(decimal_format="number")
_canonical = msgspec.json.Encoder(decimal_format="number", order="sorted")


def decode(data: bytes | str) -> object:
    """Raises NotJson, also for what PostgreSQL cannot hold (the character NUL)."""
    try:
        value: object = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise NotJson("it is not valid JSON") from error
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    if _deeper_than(MAX_DEPTH, value):
        raise NotJson("it is nested too deeply")
    if b"\\u0000" in _canonical.encode(value):
        raise NotJson("a text contains the character NUL")
    return value


def _deeper_than(levels: int, value: object) -> bool:
    if isinstance(value, dict):
        return _deeper_than(levels, list(value.values()))
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(levels - 1, item) for item in value)
    return False


def decode_object(text: str) -> dict[str, object]:
    """A JSON object that the bank wrote itself."""
    value = _decoder.decode(text)
    assert isinstance(value, dict)
    return value


def encode(value: object) -> bytes:
    return _encoder.encode(value)


def canonical(value: object) -> bytes:
    """The same bytes for the same value, in any order of its keys."""
    return _canonical.encode(value)


def stored(text: str | bytes) -> msgspec.Raw:
    """JSON that the database holds, embedded as it is."""
    return msgspec.Raw(text)


def money(amount: Decimal) -> str:
    return f"{amount:.2f}"


def instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
