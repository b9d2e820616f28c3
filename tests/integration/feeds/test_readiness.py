"""A process that follows a feed is ready while it makes progress, or another process does."""

from __future__ import annotations

import pytest

from libs.handling import feeds
from libs.persistence.engine import Database
from libs.runtime.process import Process
from tests.integration.feeds.following import (
    FEED,
    Provider,
    followed,
    stands_still,
)
from tests.support.waiting import eventually


async def not_ready(process: Process) -> bool:
    return f"feed:{FEED}" in await process.readiness.failures()


async def is_ready(process: Process) -> bool:
    return not await not_ready(process)


async def test_a_provider_that_is_away_does_not_make_the_service_unready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PROGRESS_SECONDS", 60.0)
    async with followed(database, Provider(fails=True)) as process:
        standing = await eventually("it stands still", lambda: stands_still(database))

        assert await is_ready(process)
        assert standing.stop is not None
        assert standing.stop.entry_position is None


async def test_a_tail_that_hangs_is_not_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PROGRESS_SECONDS", 1.0)
    provider = Provider()
    async with followed(database, provider) as process:
        await eventually("it follows", lambda: is_ready(process))

        provider.hangs = True

        await eventually("it is not ready", lambda: not_ready(process))


async def test_who_stands_by_is_ready(database: Database) -> None:
    async with (
        followed(database, Provider()) as leading,
        followed(database, Provider()) as standing_by,
    ):
        await eventually("the one leads", lambda: is_ready(leading))
        await eventually("the other stands by", lambda: is_ready(standing_by))
