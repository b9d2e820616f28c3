"""Refused requests in the audit: those that could not prove who sent them, and those that may not do what they ask.

Equal ones within `WRITE_SECONDS` are one row with their count, and the rows that are written at a time are bounded: a
caller who guesses keys does not fill the database. Unproven senders, subscription keys and operators are counted apart,
so that many refusals of one of them hide none of another:

| groups | a further one is counted by |
|---|---|
| up to `GROUPS` | address, actor, key, browser, action, code |
| up to twice as many | actor and code, with the action `SEVERAL` |
| beyond | action and code |
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
from libs.contracts.principal import Principal
from libs.handling.periodic import repeat
from libs.persistence import audit
from libs.persistence.audit import Entry
from libs.persistence.engine import Database
from libs.runtime.addresses import counted_as

WRITE_SECONDS = 10.0
GROUPS = 50
AUTHENTICATION = "authenticate"
"""The action of a request that did not get as far as what it asks for."""
SEVERAL = "several"
"""The action of requests of one actor that were refused with one code, and are counted together."""
_OF_NO_KEY = (MissingCredentials, MalformedCredentials, UnknownSubscriptionKey)


class _Group(NamedTuple):
    address: str | None
    actor: str
    action: str
    code: str
    key: str | None = None
    browser: str | None = None


class Refusals:
    """What was refused since it was last written. Lost with the process, at most `WRITE_SECONDS` of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._strangers: Counter[_Group] = Counter()
        self._keys: Counter[_Group] = Counter()
        self._operators: Counter[_Group] = Counter()

    def stranger(self, error: BanksideError, address: str, claimed_key: str | None) -> None:
        """Count a request that was not authenticated. A key that does not exist is not kept: there are any number."""
        key = "" if claimed_key is None or isinstance(error, _OF_NO_KEY) else claimed_key
        _count(self._strangers, _Group(address, key, AUTHENTICATION, error.code))

    def known(
        self, error: BanksideError, address: str, principal: Principal, operation: str
    ) -> None:
        """Count a request whose sender is known and may not do this."""
        browser = counted_as(principal.browser) if principal.browser else None
        counts = self._operators if principal.operator else self._keys
        _count(
            counts,
            _Group(
                address,
                principal.actor,
                operation,
                error.code,
                principal.subscription_key,
                browser,
            ),
        )

    async def write_for_ever(self) -> NoReturn:
        await repeat("refusals", self.write, WRITE_SECONDS)

    async def write(self) -> None:
        """What was counted stays counted when this fails, and is written by the next call: twice, where this one was
        committed and the answer is lost. A count in the audit is then too high, and no refusal is missing.
        """
        strangers, keys = Counter(self._strangers), Counter(self._keys)
        operators = Counter(self._operators)
        entries = [
            _entry(group, count)
            for counts in (strangers, keys, operators)
            for group, count in counts.items()
        ]
        if not entries:
            return
        async with self._database.transaction() as connection:
            await audit.append(connection, entries)
        self._strangers -= strangers
        self._keys -= keys
        self._operators -= operators


def _count(counts: Counter[_Group], group: _Group) -> None:
    if group not in counts and len(counts) >= GROUPS:
        of_actor = _Group(None, group.actor, SEVERAL, group.code)
        is_kept = of_actor in counts or len(counts) < 2 * GROUPS
        group = of_actor if group.actor and is_kept else _Group(None, "", group.action, group.code)
    counts[group] += 1


def _entry(group: _Group, count: int) -> Entry:
    return Entry(
        actor=group.actor,
        action=group.action,
        outcome=group.code,
        subject={"count": count},
        address=group.address,
        key=group.key,
        browser=group.browser,
    )
