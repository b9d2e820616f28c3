"""The upkeep is done by one process at a time; one that froze drops nothing when it goes on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from libs.persistence.leadership import LeadershipLost, Term, leadership
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.engine.upkeep import LEASE, Upkeep
from services.webhook_dispatcher.repository import partitions
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig
from tests.support.pace import pace


class Freezing(Retention):
    """Stands still before anything is dropped, until it is told to go on."""

    def __init__(self, rig: Rig, days: Partitions) -> None:
        super().__init__(rig.database, days, DeliverySettings())
        self.frozen, self.thawed = asyncio.Event(), asyncio.Event()

    async def drop(self, term: Term) -> None:
        self.frozen.set()
        await self.thawed.wait()
        await super().drop(term)


async def test_an_upkeep_whose_lease_was_taken_drops_no_partition(rig: Rig) -> None:
    days = Partitions(rig.database)
    old = datetime.now(UTC).date() - timedelta(days=60)
    await days.ensure("event", [old])
    await days.ensure("attempt", [old])
    freezing = Freezing(rig, days)
    unavailability = Unavailability(rig.database, days, DeliverySettings(), rig.clock, lambda: None)
    upkeep = Upkeep(rig.database, days, unavailability, freezing, freezing.thawed.set)
    keeping = asyncio.create_task(upkeep.keep())
    async with asyncio.timeout(10 * pace()):
        await freezing.frozen.wait()
    await rig.change("UPDATE leader_lease SET lease_until = '-infinity'")

    async with leadership(rig.database, LEASE):
        freezing.thawed.set()
        with pytest.raises(LeadershipLost):
            await keeping

    async with rig.database.transaction() as connection:
        assert old in await partitions.days(connection, "event")
        assert old in await partitions.days(connection, "attempt")
