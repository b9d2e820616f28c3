"""The month of a statement of Increase's."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from increase.types import AccountStatement

from services.ledger_read.adapters.increase.ledger import to_period


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2025-03-01T00:00:00Z", "2025-04-01T00:00:00Z"),
        ("2025-03-01T00:00:00Z", "2025-03-31T23:59:59Z"),
        ("2025-02-28T23:59:59Z", "2025-03-31T23:59:59Z"),
        ("2025-03-01T00:00:00-05:00", "2025-04-01T00:00:00-04:00"),
        ("2025-02-28T23:59:59-05:00", "2025-03-31T23:59:59-04:00"),
    ],
)
def test_a_period_that_begins_and_ends_near_midnight_is_its_month(start: str, end: str) -> None:
    statement = AccountStatement(
        id="account_statement_1",
        account_id="account_1",
        created_at=datetime(2025, 4, 1, 6, tzinfo=UTC),
        ending_balance=0,
        file_id="file_1",
        starting_balance=0,
        statement_period_start=datetime.fromisoformat(start),
        statement_period_end=datetime.fromisoformat(end),
        type="account_statement",
    )

    period = to_period(statement)

    assert (period.year, period.month) == (2025, 3)
    assert (period.start_date, period.end_date) == (date(2025, 3, 1), date(2025, 3, 31))
