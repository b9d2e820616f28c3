"""Refused requests in the audit: those that could not prove who sent them, and those that may not do what they ask.

Equal ones within `WRITE_SECONDS` are one row with their count, and at most `GROUPS` rows of either kind are written at
a time: a caller who guesses keys does not fill the database. What is beyond is counted without its address.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, NoReturn

from libs.contracts.errors import (
    BanksideError,
    MalformedCredentials,
    MissingCredentials,
    UnknownSubscriptionKey,
)
from libs.handling.periodic import repeat
from libs.persistence import audit
from libs.persistence.audit import Entry
from libs.persistence.engine import Database

WRITE_SECONDS = 10.0
GROUPS = 50
AUTHENTICATION = "authenticate"
"""The action of a request that did not get as far as what it asks for."""
_OF_NO_KEY = (MissingCredentials, MalformedCredentials, UnknownSubscriptionKey)


class _Group(NamedTuple):
    address: str | None
    actor: str
    action: str
    code: str


class Refusals:
    """What was refused since it was last written. Lost with the process, at most `WRITE_SECONDS` of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._strangers: Counter[_Group] = Counter()
        self._known: Counter[_Group] = Counter()

    def stranger(self, error: BanksideError, address: str, claimed_key: str | None) -> None:
        """Count a request that was not authenticated. A key that does not exist is not kept: there are any number."""
        key = "" if claimed_key is None or isinstance(error, _OF_NO_KEY) else claimed_key
        _count(self._strangers, _Group(address, key, AUTHENTICATION, error.code))

    def known(self, error: BanksideError, address: str, actor: str, operation: str) -> None:
        """Count a request whose sender is known and may not do this; `actor` as `Principal.actor`."""
        _count(self._known, _Group(address, actor, operation, error.code))

    async def write_for_ever(self) -> NoReturn:
        await repeat("refusals", self.write, WRITE_SECONDS)

    async def write(self) -> None:
        """What was counted stays counted when this fails, and is written by the next call."""
        strangers, known = Counter(self._strangers), Counter(self._known)
        entries = [_entry(group, count) for group, count in (strangers + known).items()]
        if not entries:
            return
        async with self._database.transaction() as connection:
            await audit.append(connection, entries)
        self._strangers -= strangers
        self._known -= known


def _count(counts: Counter[_Group], group: _Group) -> None:
    if group not in counts and len(counts) >= GROUPS:
        group = _Group(None, "", group.action, group.code)
    counts[group] += 1


def _entry(group: _Group, count: int) -> Entry:
    return Entry(
        actor=group.actor,
        action=group.action,
        outcome=group.code,
        subject={"count": count},
        address=group.address,
    )
