"""Texts in JSON of a provider, made such that PostgreSQL can store them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

import pytest

from libs.providers.storable_json import storable_json
from tests.support.with_each import with_each


def escaped(text: str) -> bytes:
    return json.dumps({"name": text}).encode()


def unescaped(text: str) -> bytes:
    """Lone surrogates in bytes that are no UTF-8, which `json.loads` takes."""
    return json.dumps({"name": text}, ensure_ascii=False).encode("utf-8", "surrogatepass")


@with_each(
    product(
        [escaped, unescaped],
        [
            ("Acme\0Inc", "Acme\ufffdInc"),
            ("\ud800 and \udfff", "\ufffd and \ufffd"),
            ("\ud83d\ud83dlone", "\ufffd\ufffdlone"),
            ("\\u0000 \\\0", "\\u0000 \\\ufffd"),
            ('"\0"', '"\ufffd"'),
        ],
    ),
    lambda case: f"{case[0].__name__} {case[1][0]!r}",
)
def test_what_postgresql_does_not_store_is_replaced(
    case: tuple[Callable[[str], bytes], tuple[str, str]],
) -> None:
    encode, (text, stored) = case
    body = storable_json(encode(text))

    assert json.loads(body) == {"name": stored}


@pytest.mark.parametrize("encode", [escaped, unescaped])
@pytest.mark.parametrize(
    "text", ["José \N{GRINNING FACE} ퟿", "a \\ud800 in words", "\\\\u0000 \n\t"]
)
def test_any_other_text_stays(encode: Callable[[str], bytes], text: str) -> None:
    body = encode(text)

    assert storable_json(body) == body
