"""Why a wire is in its state, also in rows of releases that stored words in place of a code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.contracts.wires import WireReason as R
from libs.contracts.wires import WireState as S
from services.payments.reasons import LONGEST_REASON, Why, one_line, why_recorded, why_reported
from tests.support.with_each import with_each

OPERATOR = "operator:ada"


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


@pytest.mark.parametrize(
    ("state", "words", "why"),
    [
        (S.REJECTED, "insufficient_funds", Why(R.INSUFFICIENT_FUNDS)),
        (S.REJECTED, "No such account.", Why(R.PROVIDER_REFUSED, "No such account.")),
        (S.REJECTED, None, Why(R.PROVIDER_REFUSED)),
        (S.RETURNED, "account_closed", Why(R.RETURNED, "account_closed")),
        (S.RETURNED, "a\nb", Why(R.RETURNED, "a?b")),
        (S.RETURNED, "x" * 300, Why(R.RETURNED, "x" * LONGEST_REASON)),
        (S.COMPLETED, "early", Why()),
    ],
)
def test_what_the_bank_reports_has_a_code_and_its_words(
    state: S, words: str | None, why: Why
) -> None:
    assert why_reported(state, words) == why


@with_each(
    [
        ((S.SUBMITTED, None, None, None, None), Why()),
        ((S.PENDING_SUBMISSION, None, None, "sub_1", "Known."), Why(comment="Known.")),
        ((S.CANCELED, "declined", None, "sub_1", "Twice."), Why(R.DECLINED, None, "Twice.")),
        ((S.REJECTED, "provider_refused", "x", None, None), Why(R.PROVIDER_REFUSED, "x")),
        ((S.REJECTED, "not_found", None, None, None), Why(R.PROVIDER_REFUSED, "not_found")),
        ((S.RETURNED, "no_account", None, None, None), Why(R.RETURNED, "no_account")),
        (
            (S.REJECTED, "By phone.", None, OPERATOR, None),
            Why(R.DECIDED_BY_OPERATOR, None, "By phone."),
        ),
        (
            (S.CANCELED, "He asked.", None, OPERATOR, None),
            Why(R.CANCELED_BY_OPERATOR, None, "He asked."),
        ),
    ]
)
def test_a_row_of_an_earlier_release_is_read_as_one_of_this(
    case: tuple[tuple[S, str | None, str | None, str | None, str | None], Why],
) -> None:
    row, why = case

    assert why_recorded(*row) == why
