"""What a wire policy says of a wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from libs.contracts.errors import LimitExceeded
from services.payments.policies import NOTHING_USED, Policy, Usage

NOW = datetime(2026, 11, 24, 15, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "used", "exceeded"),
    [
        (Policy(per_wire_limit=Decimal("99.99")), NOTHING_USED, ("per_wire", Decimal("99.99"), 0)),
        (Policy(per_wire_limit=Decimal(100)), NOTHING_USED, None),
        (
            Policy(daily_limit=Decimal(150)),
            Usage(Decimal("50.01"), 1),
            ("daily_amount", 150, Decimal("50.01")),
        ),
        (Policy(daily_limit=Decimal(150)), Usage(Decimal(50), 1), None),
        (Policy(daily_count=2), Usage(Decimal(1), 2), ("daily_count", 2, 2)),
        (Policy(daily_count=2), Usage(Decimal(1), 1), None),
    ],
)
def test_a_wire_is_refused_by_the_limit_that_it_is_beyond(
    policy: Policy, used: Usage, exceeded: tuple[object, object, object] | None
) -> None:
    found = None
    try:
        policy.require_within_limits(Decimal(100), used)
    except LimitExceeded as error:
        found = (error.extra["limit"], error.extra["allowed"], error.extra["used"])

    assert found == exceeded


@pytest.mark.parametrize(
    ("policy", "linked_at", "needed"),
    [
        (Policy(), NOW, False),
        (Policy(approval_threshold=Decimal(100)), NOW, True),
        (Policy(approval_threshold=Decimal("100.01")), NOW, False),
        (Policy(new_payee_hours=48), NOW - timedelta(hours=47, minutes=59), True),
        (Policy(new_payee_hours=48), NOW - timedelta(hours=48), False),
    ],
)
def test_an_amount_or_a_new_payee_needs_approval(
    policy: Policy, linked_at: datetime, needed: bool
) -> None:
    assert policy.needs_approval(Decimal(100), linked_at, NOW) is needed


def test_a_ceiling_holds_where_there_is_no_limit_and_above_one() -> None:
    ceilings = Policy(per_wire_limit=Decimal(100), daily_count=5)
    policy = Policy(
        per_wire_limit=Decimal(500), daily_limit=Decimal(900), approval_threshold=Decimal(7)
    )

    within = policy.within(ceilings)

    assert within == Policy(
        per_wire_limit=Decimal(100),
        daily_limit=Decimal(900),
        daily_count=5,
        approval_threshold=Decimal(7),
    )
    assert policy.beyond(ceilings) == ["per_wire_limit"]
