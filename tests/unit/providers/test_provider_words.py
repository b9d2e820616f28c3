"""A provider's words as they are stored and shown: bounded, printable, without the numbers that it was sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.providers.outcomes import Reason, Refused
from libs.providers.provider_words import LONGEST_WORDS, one_line, without_numbers
from tests.support.with_each import with_each


@pytest.mark.parametrize(
    ("words", "stored"),
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
def test_words_are_one_line_that_can_be_stored(words: str, stored: str) -> None:
    assert one_line(words) == stored


@given(st.text(max_size=600))
def test_any_text_becomes_short_and_printable(words: str) -> None:
    stored = one_line(words)

    assert len(stored) == min(len(words), LONGEST_WORDS)
    assert stored.isprintable()
    assert one_line(stored) == stored


@with_each(
    [
        ("The tax identifier 12-3456789 is taken.", "The tax identifier … is taken."),
        ("123-45-6789 and 987654321 and 1 2 3 4", "… and … and …"),
        (
            "123\u201345\u20136789 or 123 - 45 - 6789 or 12\u00a03456789 or 123,456,789",
            "… or … or … or …",
        ),
        ("Account 1234 was opened on 2026-03-02.", "Account … was opened on …."),
        ("At most 200 characters, R01.", "At most 200 characters, R01."),
    ]
)
def test_no_tax_or_account_number_is_in_a_sentence(case: tuple[str, str]) -> None:
    sentence, shown = case

    assert without_numbers(sentence) == shown


def test_a_refusals_words_are_its_code_and_its_sentence() -> None:
    said = "No\nentity has 12-3456789. " + "x" * 300

    words = Refused(Reason.PROVIDER_REFUSED, "invalid_parameters_error", said).words

    assert words.startswith("invalid_parameters_error: No?entity has …. xxx")
    assert len(words) == LONGEST_WORDS
    assert Refused(Reason.PROVIDER_REFUSED, "not_found").words == "not_found"
