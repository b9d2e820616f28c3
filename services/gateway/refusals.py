"""Refused requests in the audit: those that could not prove who sent them, and those that may not do what they ask.

Equal ones within `WRITE_SECONDS` are one row with their count, and at most `GROUPS` rows are written at a time: a
caller who guesses keys does not fill the database. What is beyond is counted without its address and key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import NamedTuple, NoReturn

import structlog

from libs.contracts.errors import BanksideError
from libs.handling.auditing import HeadLog
from libs.persistence import audit
from libs.persistence.audit import Entry
from libs.persistence.availability import is_away
from libs.persistence.engine import Database

WRITE_SECONDS = 5.0
GROUPS = 100


class _Group(NamedTuple):
    address: str | None
    subscription_key: str | None
    operation: str
    code: str


class Refusals:
    """What was refused since it was last written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: Counter[_Group] = Counter()
        self._heads = HeadLog()

    def note(
        self, error: BanksideError, operation: str, address: str, subscription_key: str | None
    ) -> None:
        """Count a refusal; `subscription_key`: as claimed, if it has the form of one."""
        group = _Group(address, subscription_key, operation, error.code)
        if group not in self._counts and len(self._counts) >= GROUPS:
            group = _Group(None, None, operation, error.code)
        self._counts[group] += 1

    async def write_for_ever(self) -> NoReturn:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()

    async def write(self) -> None:
        """Nothing is lost while the database is away: it is written later."""
        counts = Counter(self._counts)
        if not counts:
            return
        try:
            async with self._database.transaction() as connection:
                head = await audit.append(
                    connection, [_entry(group, count) for group, count in counts.items()]
                )
        except Exception as error:
            if not is_away(error):
                raise
            structlog.get_logger("refusals").warning("database_away")
            return
        self._counts -= counts
        if head is not None:
            self._heads.written(head)


def _entry(group: _Group, count: int) -> Entry:
    return Entry(
        actor=group.subscription_key or "",
        action=group.operation,
        outcome=group.code,
        subject={"count": count},
        address=group.address,
    )
