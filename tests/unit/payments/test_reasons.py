"""Why a wire is in its state, also in rows of releases that stored words in place of a code."""

from __future__ import annotations

import pytest

from libs.contracts.wires import WireReason as R
from libs.contracts.wires import WireState as S
from libs.providers.outcomes import Reason, Refused
from libs.providers.provider_words import LONGEST_WORDS
from services.payments.reasons import Why, why_recorded, why_refused, why_reported
from tests.support.with_each import with_each

OPERATOR = "operator:ada"


@pytest.mark.parametrize(
    ("state", "words", "why"),
    [
        (S.REJECTED, "insufficient_funds", Why(R.INSUFFICIENT_FUNDS)),
        (S.REJECTED, "No such account.", Why(R.PROVIDER_REFUSED, "No such account.")),
        (S.REJECTED, None, Why(R.PROVIDER_REFUSED)),
        (S.RETURNED, "account_closed", Why(R.RETURNED, "account_closed")),
        (S.RETURNED, "a\nb", Why(R.RETURNED, "a?b")),
        (S.RETURNED, "x" * 300, Why(R.RETURNED, "x" * LONGEST_WORDS)),
        (S.COMPLETED, "early", Why()),
    ],
)
def test_what_the_bank_reports_has_a_code_and_its_words(
    state: S, words: str | None, why: Why
) -> None:
    assert why_reported(state, words) == why


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (
            Refused(
                Reason.PROVIDER_REFUSED, "invalid_operation_error", "Wires are not enabled here."
            ),
            Why(R.PROVIDER_REFUSED, "invalid_operation_error: Wires are not enabled here."),
        ),
        (Refused(Reason.PROVIDER_REFUSED, "not_found"), Why(R.PROVIDER_REFUSED, "not_found")),
        (
            Refused(Reason.INSUFFICIENT_FUNDS, "insufficient_funds", "Too little."),
            Why(R.INSUFFICIENT_FUNDS),
        ),
        (
            Refused(Reason.ACCOUNT_CLOSED, "invalid_operation_error", "It is closed."),
            Why(R.ACCOUNT_CLOSED, "invalid_operation_error: It is closed."),
        ),
    ],
)
def test_what_the_bank_refuses_has_its_words_unless_its_code_is_ours(
    refused: Refused, why: Why
) -> None:
    assert why_refused(refused) == why


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
