"""After the database's clock was set back, sends and decisions are as old as they were."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, OutcomePending
from libs.handling.parking import NeedsOperator
from libs.providers.newest_records import NewestPage
from libs.providers.outcomes import Absent, Accepted, Finding, Unknown
from services.onboarding.app import continuity_of
from services.onboarding.ports import OpenedAccount
from tests.integration.onboarding.scripted import ScriptedWrite
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
    await set_clock_ahead(steps, HOURS + unnoticed_seconds)
    await set_clock_back(steps.database, HOURS)


async def set_clock_ahead(steps: Steps, seconds: float) -> None:
    """As if the clock had been ahead for all that was done."""
    async with steps.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE saga_steps SET intended_at = intended_at + make_interval(secs => :ahead),"
                " first_sent_at = first_sent_at + make_interval(secs => :ahead),"
                " last_sent_at = last_sent_at + make_interval(secs => :ahead),"
                " resolved_at = resolved_at + make_interval(secs => :ahead) WHERE saga_id = :id"
            ),
            {"ahead": seconds, "id": steps.name.saga_id},
        )


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


async def last_send_age_seconds(steps: Steps) -> float:
    age = "SELECT extract(epoch FROM clock_timestamp() - last_sent_at)::float8 FROM saga_steps"
    async with steps.database.transaction() as connection:
        found = await connection.execute(
            text(f"{age} WHERE saga_id = :id"), {"id": steps.name.saga_id}
        )
        return float(found.scalar_one())


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

    assert 0 <= await last_send_age_seconds(steps) < 60 * pace()


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


class SetBackWhileAsked(ScriptedWrite[OpenedAccount]):
    """A provider that does not answer. While it is asked, the clock goes back, and onboarding looks at it."""

    steps: Steps

    async def find(self, key: UUID, deadline: float) -> Finding[OpenedAccount]:
        await set_clock_back(self.steps.database, HOURS)
        await look(self.steps)
        return Unknown("timed_out")


async def drive_over_a_setback(steps: Steps) -> None:
    await set_clock_ahead(steps, HOURS)
    steps.write = SetBackWhileAsked(ACCOUNT, capabilities=steps.write.capabilities)
    steps.write.steps = steps
    with pytest.raises(OutcomePending):
        await steps.drive()


async def test_a_drive_over_a_setback_leaves_a_last_send_of_now_at_most(steps: Steps) -> None:
    await sent_before(steps, 600)

    await drive_over_a_setback(steps)

    assert 0 <= await last_send_age_seconds(steps) < 60 * pace()


async def test_a_drive_over_a_setback_makes_no_known_send_of_a_lost_one(distrusted: Steps) -> None:
    scripted = distrusted.write
    scripted.answers += [Unknown("timed_out")]
    with pytest.raises(OutcomePending):
        await distrusted.drive()

    await drive_over_a_setback(distrusted)

    distrusted.write = scripted
    scripted.answers += [Accepted(ACCOUNT)]
    await distrusted.drive()
    assert await missing_records(distrusted.database) == [f"core: {distrusted.name.customer_id}"]
