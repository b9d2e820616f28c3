"""The reasons of a wire's states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.payments.reasons import LONGEST_REASON, one_line


@pytest.mark.parametrize(
    ("given_reason", "stored"),
    [
        ("no_such_beneficiary", "no_such_beneficiary"),
        ("Kontó geschlossen", "Kontó geschlossen"),
        ("no\x00such", "no?such"),
        ("one\r\ntwo\tthree\x1b[31m", "one??two?three?[31m"),
        ("\ud800", "?"),
        ("x" * 10_000, "x" * 255),
        ("", ""),
    ],
)
def test_a_reason_is_one_line_that_can_be_stored(given_reason: str, stored: str) -> None:
    assert one_line(given_reason) == stored


@given(st.text(max_size=600))
def test_any_text_becomes_short_and_printable(reason: str) -> None:
    stored = one_line(reason)

    assert len(stored) == min(len(reason), LONGEST_REASON)
    assert stored.isprintable()
    assert one_line(stored) == stored
