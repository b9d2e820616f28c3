"""After the database's clock was set back, sends and decisions are as old as they were."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, OutcomePending
from libs.handling.parking import NeedsOperator
from libs.providers.newest_records import NewestPage
from libs.providers.outcomes import Absent, Accepted, Unknown
from services.onboarding.app import continuity_of
from tests.integration.onboarding.steps import ACCOUNT, Steps
from tests.support.database_life import distrust_life, missing_records, set_clock_back
from tests.support.pace import pace

HOURS = 3 * 3600.0
DAY = 24 * 3600.0


async def set_back(steps: Steps, *, unnoticed_seconds: float = 0.0) -> None:
    """The clock goes back by three hours after all that was done, and onboarding looks at it.

    Args:
        unnoticed_seconds: by how much more it went back than can be told.
    """
    await set_back_unseen(steps, unnoticed_seconds=unnoticed_seconds)
    await look(steps)


async def set_back_unseen(steps: Steps, *, unnoticed_seconds: float = 0.0) -> None:
    """As `set_back`, before onboarding looks at it."""
    async with steps.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE saga_steps SET intended_at = intended_at + make_interval(secs => :ahead),"
                " first_sent_at = first_sent_at + make_interval(secs => :ahead),"
                " last_sent_at = last_sent_at + make_interval(secs => :ahead),"
                " resolved_at = resolved_at + make_interval(secs => :ahead) WHERE saga_id = :id"
            ),
            {"ahead": HOURS + unnoticed_seconds, "id": steps.name.saga_id},
        )
    await set_clock_back(steps.database, HOURS)


async def look(steps: Steps) -> None:
    await continuity_of(steps.database, fetch, fetch, transit_seconds=3600).check()


async def fetch(_: str | None, __: int) -> NewestPage:
    return NewestPage([], None)


async def sent_before(steps: Steps, seconds: float) -> None:
    """A first send of unknown outcome, so long ago."""
    steps.write.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await steps.make_older(seconds)


async def test_a_step_is_not_sent_again_under_a_key_that_only_looks_remembered(
    steps: Steps,
) -> None:
    await sent_before(steps, DAY - 60)
    await set_back(steps)

    with pytest.raises(NeedsOperator):
        await steps.drive()

    assert steps.write.calls == ["send", "find"]


async def test_a_last_send_may_still_arrive_for_no_longer_than_one_of_now(steps: Steps) -> None:
    await sent_before(steps, 0)

    await set_back(steps)

    async with steps.database.transaction() as connection:
        age = "SELECT extract(epoch FROM clock_timestamp() - last_sent_at)::float8 FROM saga_steps"
        found = await connection.execute(
            text(f"{age} WHERE saga_id = :id"), {"id": steps.name.saga_id}
        )
    assert 0 <= found.scalar_one() < 60 * pace()


async def test_a_send_before_the_look_may_still_arrive(steps: Steps) -> None:
    await sent_before(steps, 0)
    await set_back_unseen(steps)
    steps.write.answers += [Absent(), Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await steps.drive()
    await look(steps)
    await steps.end_lease(seconds=0)

    with pytest.raises(InvalidState) as refused:
        await steps.resolve("absent")

    assert "may still arrive" in refused.value.detail


async def test_what_was_absent_before_a_server_with_a_clock_behind_took_over_is_looked_up_again(
    steps: Steps,
) -> None:
    await sent_before(steps, 3600)
    await steps.end_lease(seconds=0)
    await steps.resolve("absent")
    await steps.lease_again()
    await distrust_life(steps.database)
    await set_back(steps)
    steps.write.answers += [Accepted(ACCOUNT)]

    await steps.drive()

    assert steps.write.calls == ["send", "find"]


@pytest.mark.parametrize("unnoticed_seconds", [0.0, 600.0])
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_send_that_is_known_stays_known_and_one_that_may_be_lost_stays_so(
    distrusted: Steps, is_known: bool, unnoticed_seconds: float
) -> None:
    distrusted.write.answers += [*([Absent()] if is_known else []), Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await distrusted.drive()
    await set_back(distrusted, unnoticed_seconds=unnoticed_seconds)
    distrusted.write.answers += [Accepted(ACCOUNT)]

    await distrusted.drive()

    missing = await missing_records(distrusted.database)
    assert missing == ([] if is_known else [f"core: {distrusted.name.customer_id}"])
