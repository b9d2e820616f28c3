"""What tests of a database's lives share: a bank that holds records of ours, and lives that begin and pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import text

from libs.contracts.errors import ProviderTimeout
from libs.persistence import continuity
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Compared, Continuity, NewestRecords
from libs.persistence.engine import Database
from libs.providers.newest_records import NewestPage

TRANSIT_SECONDS = 60.0


@dataclass
class Bank:
    """Holds records of ours, of which the database knows some, the oldest first; gives them out `page` at a time."""

    holds: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    older_than_the_life: set[str] = field(default_factory=set)
    page: int = 500
    trusted_until: datetime | None = None
    """What the last page was compared with."""
    away: bool = False
    away_after: str | None = None
    """The page that begins there, and no other, gets no answer."""
    asked: list[str | None] = field(default_factory=list)
    provider: str = "bank"

    @property
    def pages_read(self) -> int:
        return len(self.asked)

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        self.asked.append(after)
        if self.away or (after is not None and after == self.away_after):
            raise ProviderTimeout
        newest = list(reversed(self.holds))
        begin = int(after or 0)
        end = begin + min(limit, self.page)
        return NewestPage(newest[begin:end], str(end) if end < len(newest) else None)

    async def compare(
        self, _: AsyncConnection, ids: Sequence[str], trusted_until: datetime
    ) -> Compared:
        self.trusted_until = trusted_until
        return Compared(
            missing=[each for each in ids if each not in self.known],
            reaches_back=any(each in self.older_than_the_life for each in ids),
        )


A_DAY_OR_SO = "make_interval(days => 1, secs => random() * 600)"
"""Never the same: a life must not be moved to where another one stands."""


def checking(
    database: Database, bank: Bank, went_back: Callable[[], Awaitable[None]] | None = None
) -> Continuity:
    source = NewestRecords(bank.provider, bank.fetch, bank.compare)
    return Continuity(database, [source], transit_seconds=TRANSIT_SECONDS, went_back=went_back)


async def start_anew(database: Database) -> None:
    """As if the server had been started again and a service had seen that: the lives that are known lie in the past."""
    async with database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}")
        )
        await connection.execute(
            text("INSERT INTO database_life (started_at) VALUES (pg_postmaster_start_time())")
        )


async def let_pass(database: Database, seconds: float) -> None:
    """As if so much time had passed since the present life was first seen."""
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE database_life SET first_seen_at = first_seen_at - make_interval(secs => :seconds)"
            ),
            {"seconds": seconds},
        )


async def start_long_ago(database: Database) -> None:
    """As `start_anew`; nothing that was sent before that start is still on its way."""
    await start_anew(database)
    await let_pass(database, 2 * TRANSIT_SECONDS)


async def let_a_claim_pass(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE database_life SET report_due_at = clock_timestamp()"))


async def lost_history_seconds(database: Database) -> float | None:
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT lost_history_seconds()"))
        seconds: float | None = found.scalar_one()
        return seconds


async def is_trusted(database: Database) -> bool:
    return await lost_history_seconds(database) is None


async def cases(database: Database) -> list[list[str]]:
    async with database.transaction() as connection:
        return [list(case.missing_records) for case in await continuity.open_cases(connection)]


async def close(database: Database) -> int:
    async with database.transaction() as connection:
        closed = await continuity.close(connection, by="ada", reason="The wire is explained.")
        return len(closed)


async def first_seen(database: Database) -> list[datetime]:
    """Of the lives that are not checked, the oldest first."""
    async with database.transaction() as connection:
        found = await connection.execute(
            text("SELECT first_seen_at FROM database_life WHERE checked_at IS NULL ORDER BY 1")
        )
        return list(found.scalars())
