"""What is shown of a number that is not shown whole."""

from __future__ import annotations

import pytest

from libs.contracts.masking import masked


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("12345678901234567", "4567"),
        ("12345678", "5678"),
        ("1234567", "567"),
        ("12345", "45"),
        ("1234", "34"),
        ("1", ""),
        ("", ""),
    ],
)
def test_at_most_four_digits_and_never_more_than_half_of_a_number_are_shown(
    number: str, shown: str
) -> None:
    assert masked(number) == shown
