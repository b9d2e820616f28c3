"""In which year interest counts that Increase has paid."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from services.ledger_read.adapters.increase.transactions import (
    ListedTransaction,
    is_earned_by_its_account,
)


@pytest.mark.parametrize(
    ("period_end", "year"),
    [
        ("2025-12-31T23:59:59+00:00", 2025),
        ("2026-01-01T00:00:00Z", 2025),
        ("2025-12-31T23:59:59-05:00", 2025),
        ("2026-01-01T00:00:00-05:00", 2025),
        ("2026-01-31T23:59:59+00:00", 2026),
        (None, 2026),
    ],
)
def test_interest_counts_in_the_year_in_which_its_period_ends(
    period_end: object, year: int
) -> None:
    source: dict[str, Any] = {
        "category": "interest_payment",
        "interest_payment": {"accrued_on_account_id": "account_1", "period_end": period_end},
    }
    paid_at = datetime(2026, 1, 2, 12, tzinfo=UTC)
    interest = ListedTransaction("transaction_1", "account_1", 5, "Interest", paid_at, source)

    years = [one for one in (2025, 2026) if is_earned_by_its_account(interest, one)]

    assert years == [year]
