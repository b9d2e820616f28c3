"""Which wires of a customer count against the limits of a day at the bank."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from libs.contracts.wires import WireState
from services.payments.policies import NOTHING_USED, Usage
from services.payments.repository import policies
from tests.unit.payments.bench import COMMAND, Bench

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own")

IN_THE_EVENING = datetime(2026, 3, 5, 2, tzinfo=UTC)
"""Of March 4th at the bank, which begins at 05:00 UTC."""
DAY_BEFORE = "2026-03-03T12:00Z"
FIRST, BEFORE = "2026-03-04T05:00Z", "2026-03-04T04:59:59Z"
LAST, AFTER = "2026-03-05T04:59:59Z", "2026-03-05T05:00Z"
ONE = Usage(COMMAND.amount, 1)


async def usage_with(bench: Bench, **changes: Any) -> Usage:
    """That of a customer who has one wire, with these changes."""
    leased = await bench.wire()
    values = {"state": WireState.SUBMITTED.value, "created": FIRST, "approved": None} | changes
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE wires SET state = :state, created_at = CAST(CAST(:created AS text) AS timestamptz),"
                " approved_at = CAST(CAST(:approved AS text) AS timestamptz) WHERE transaction_id = :id"
            ),
            {"id": leased.command_id, **values},
        )
        return await policies.usage(
            connection,
            bench.owner.tenant,
            bench.owner.customer_id or "",
            IN_THE_EVENING,
            beside=uuid4(),
        )


@pytest.mark.parametrize(
    ("created", "approved", "used"),
    [
        (FIRST, None, ONE),
        (LAST, None, ONE),
        (BEFORE, None, NOTHING_USED),
        (AFTER, None, NOTHING_USED),
        (DAY_BEFORE, FIRST, ONE),
        (DAY_BEFORE, LAST, ONE),
        (DAY_BEFORE, BEFORE, NOTHING_USED),
        (FIRST, LAST, ONE),
        (FIRST, AFTER, NOTHING_USED),
    ],
)
async def test_a_wire_counts_once_on_its_day_which_is_that_of_its_approval_if_it_needed_one(
    bench: Bench, created: str, approved: str | None, used: Usage
) -> None:
    assert await usage_with(bench, created=created, approved=approved) == used


@pytest.mark.parametrize("state", WireState)
async def test_wires_count_but_for_those_that_were_rejected_or_canceled(
    bench: Bench, state: WireState
) -> None:
    leave_nothing = (WireState.REJECTED, WireState.CANCELED)

    used = await usage_with(bench, state=state.value)

    assert used == (NOTHING_USED if state in leave_nothing else ONE)
