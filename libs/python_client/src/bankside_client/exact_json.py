"""JSON in which amounts keep every digit: a number with a fraction is a Decimal in both directions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

Reader = Callable[[Any], Any]


def encode(value: Any) -> bytes:
    """Dates, date-times and UUIDs become strings. Keys are sorted, and an amount has one form (2.5 for 2.50): equal
    values are equal bytes, which a retry under an Idempotency-Key needs.

    Raises:
        TypeError: the value, or a part of it, has no form in JSON, as a float: an amount is a Decimal or an int.
    """
    return _text("The value", value).encode()


def decode(data: bytes) -> Any:
    """Raises:
    ValueError: it is not JSON.
    """
    try:
        return json.loads(data, parse_float=Decimal)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read(kind: Any, value: Any) -> Any:
    """A decoded value as a type of `models`.

    Unknown fields are left out, and unknown values of an enumeration are taken: a newer gateway may send them. A field
    that an older gateway does not send is None.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, ArithmeticError: it does not have the form of the type.
    """
    return _reader(kind)(value)


def _text(name: str, value: Any) -> str:
    """`name` is that of the nearest field, for errors."""
    match value:
        case None | bool() | str() | int():
            return json.dumps(value, ensure_ascii=False)
        case Decimal() if value.is_finite():
            return _number(value)
        case Decimal():
            raise TypeError(f"{name} is no finite number: NaN and Infinity are no amounts.")
        case datetime() if value.tzinfo is None:
            raise TypeError("A date-time needs its time zone.")
        case date():
            return f'"{value.isoformat()}"'
        case UUID():
            return f'"{value}"'
        case Mapping():
            items = sorted(((str(key), item) for key, item in value.items()), key=itemgetter(0))
            members = (f"{json.dumps(key)}:{_text(key, item)}" for key, item in items)
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join(_text(name, item) for item in value)}]"
        case float():
            raise TypeError("An amount is a Decimal or an int; a float loses digits.")
        case _:
            raise TypeError(f"{type(value).__name__} has no form in JSON.")


def _number(value: Decimal) -> str:
    """Every digit that counts, without an exponent."""
    if not value:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@cache
def _reader(kind: Any) -> Reader:
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        kinds = [item for item in get_args(kind) if item is not NoneType]
        inner = _reader(kinds[0]) if len(kinds) == 1 else _as_it_is
        return lambda value: None if value is None else inner(value)
    if origin is list:
        item_reader = _reader(get_args(kind)[0])
        return lambda value: [item_reader(item) for item in value]
    if origin in {dict, Literal} or kind is Any:
        return _as_it_is
    if is_dataclass(kind):
        return _object_reader(kind)
    return _SCALARS[kind]


def _object_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}

    def read_object(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__} is not an object")
        return kind(
            **{
                name: reader(value[name]) if name in value else None
                for name, reader in readers.items()
            }
        )

    return read_object


def _as_it_is(value: Any) -> Any:
    return value


def _is(kind: type) -> Reader:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"not {kind.__name__}")
        return value

    return check


_SCALARS: dict[Any, Reader] = {
    str: _is(str),
    int: _is(int),
    bool: _is(bool),
    None: lambda value: None,
    Decimal: Decimal,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
}
