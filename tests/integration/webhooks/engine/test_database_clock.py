"""The time that is signed is the database's, in a process whose own clock is wrong."""

from __future__ import annotations

from datetime import timedelta

from libs.persistence.engine import open_database
from services.webhook_dispatcher.engine.database_clock import DatabaseClock
from tests.integration.webhooks.engine.rig import SERVICE, Rig
from tests.support.pace import pace

HOUR = 3600.0


async def off_by(clock: DatabaseClock, rig: Rig) -> timedelta:
    [[now]] = await rig.query("SELECT clock_timestamp()")
    off: timedelta = abs(clock() - now)
    return off


async def test_it_follows_the_database_and_not_its_own_clock(rig: Rig) -> None:
    passed = [0.0]
    clock = DatabaseClock(rig.database, monotonic=lambda: passed[0])
    near = timedelta(seconds=5 * pace())

    for _ in range(2):
        passed[0] += HOUR
        assert await off_by(clock, rig) > timedelta(minutes=50)
        await clock.read()
        assert await off_by(clock, rig) < near


async def test_without_a_database_it_goes_on_from_what_it_has(rig: Rig) -> None:
    nowhere = open_database("postgresql://nobody@127.0.0.1:1/none", SERVICE, pool_size=1)
    clock = DatabaseClock(nowhere)

    await clock.start()

    assert await off_by(clock, rig) < timedelta(seconds=5 * pace())
    await nowhere.close()
