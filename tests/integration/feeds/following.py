"""A feed with a provider in memory, followed by a process; and what tests ask about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import text

from libs.contracts.operating.feeds import SERVICES
from libs.handling.feed_tail import Record
from libs.handling.feeds import run_feed
from libs.handling.operating.serving import operating_handlers
from libs.persistence import cursor, feed_stops
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.feed_stops import FeedState
from libs.providers.feed_entries import FeedCursor, decode_entries
from libs.providers.sandbox.feed_pages import locate
from libs.runtime.process import Process
from tests.support.answered_operators import AnsweredOperators
from tests.support.infrastructure import Environment

FEED = "identity"


class Entry(msgspec.Struct, frozen=True):
    position: int
    type: str
    name: str
    provider_cursor: str | None = None
    event_id: str | None = None


@dataclass
class Provider:
    """A feed in memory. Applying its entries writes their names into the table `names`."""

    items: list[dict[str, Any]] = field(default_factory=list)
    unappliable: frozenset[str] = frozenset()
    hangs: bool = False
    fails: bool = False
    is_reversed: bool = False
    prepared: list[list[int]] = field(default_factory=list)
    """The positions of each page that was applied."""

    async def fetch(self, after: FeedCursor, limit: int) -> list[Entry]:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise ConnectionError
        page = [item for item in self.items if item["position"] > after.position][:limit]
        if self.is_reversed:
            page.reverse()
        return decode_entries(
            page, after.position, lambda item, _: msgspec.convert(item, Entry), locate
        )

    async def prepare(self, entries: Sequence[Entry]) -> Record:
        self.prepared.append([entry.position for entry in entries])

        async def record(connection: AsyncConnection) -> None:
            for entry in entries:
                await connection.execute(
                    text("INSERT INTO names (name) VALUES (:name)"), {"name": entry.name}
                )
                assert entry.name not in self.unappliable

        return record


def items(*names: object) -> list[dict[str, Any]]:
    return [
        {"position": position, "type": "person.named", "name": name}
        for position, name in enumerate(names, start=1)
    ]


@asynccontextmanager
async def followed(
    database: Database, provider: Provider, page_size: int = 100
) -> AsyncIterator[Process]:
    process = Process("onboarding")
    process.readiness.switch(True)
    async with run_feed(
        process,
        database,
        FEED,
        provider.fetch,
        provider.prepare,
        poll_seconds=0.05,
        page_size=page_size,
    ):
        yield process


async def names(database: Database) -> list[str]:
    async with database.transaction() as connection:
        return list((await connection.execute(text("SELECT name FROM names ORDER BY n"))).scalars())


async def stands_still(database: Database) -> FeedState | None:
    async with database.transaction() as connection:
        for state in await feed_stops.feed_states(connection):
            if state.feed == FEED and state.stop is not None:
                return state
    return None


def moved_to(database: Database, position: int) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        async with database.transaction() as connection:
            return await cursor.read(connection, FEED) == position

    return check


async def request_skip(database: Database, position: int) -> bool:
    async with database.transaction() as connection:
        return await feed_stops.request_skip(
            connection, FEED, position, reason="seen to by hand", asked_by="an operator"
        )


def command_line(environment: Environment) -> AnsweredOperators:
    return AnsweredOperators(
        environment, {service: partial(operating_handlers, service) for service in SERVICES}
    )
