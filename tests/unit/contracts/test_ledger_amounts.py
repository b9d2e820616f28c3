"""Amounts that travel as text."""

from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from libs.contracts.ach import DecimalText
from libs.contracts.settlement import SIGNED_DECIMAL, SignedDecimalText
from tests.support.with_each import with_each

SIGNED: TypeAdapter[str] = TypeAdapter(SignedDecimalText)
UNSIGNED: TypeAdapter[str] = TypeAdapter(DecimalText)


@pytest.mark.parametrize("text", ["0", "-12.30", "+12.30", ".5", "5.", "007.10", "1" * 40])
def test_a_signed_decimal_keeps_its_text(text: str) -> None:
    assert SIGNED.validate_python(text) == text
    assert re.search(SIGNED_DECIMAL, text)


@with_each(["", "-", "+", ".", "-.", "1e3", "1,00", " 1", "1\n", "--1", "1.2.3", "\u0661"], repr)
def test_what_is_no_signed_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        SIGNED.validate_python(text)


@pytest.mark.parametrize("text", ["12", "12.3", "-12.30", "12.300", ".30", "12.30\n", "1e2"])
def test_an_unsigned_amount_has_exactly_two_decimals(text: str) -> None:
    assert UNSIGNED.validate_python("1234567890123456.70") == "1234567890123456.70"
    with pytest.raises(ValidationError):
        UNSIGNED.validate_python(text)
