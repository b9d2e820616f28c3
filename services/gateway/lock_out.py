"""Lock-out: attempts to log in that fail lock their name and their address, for longer each time.

From the 5th failure on for a name, and the 20th for an address, each locks it for 30 s, then twice as long each time, a
quarter of an hour at most; an hour without failures forgets them. An attempt counts from its beginning, until it
succeeds: then the name's failures are forgotten, and the address's are as before. Names and addresses are stored as
keyed digests: a password typed as a name must not be found there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from sqlalchemy import bindparam, delete, func, select, text

from libs.contracts.errors import RateLimited
from libs.handling.periodic import repeat
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.engine import Database
from libs.persistence.sealing import LookupKeys
from services.gateway.tables import login_attempts

FAILURES_OF_NAME = 5
FAILURES_OF_ADDRESS = 20
FORGOTTEN_AT_ONCE = 1000
FORGET_SECONDS = 60.0

_LOCKED = select(login_attempts.c.locked_until - func.now()).where(
    login_attempts.c.subject == bindparam("subject")
)
# An attempt counts as failed from its beginning, so that attempts side by side do not get more than their number.
# Times further ahead than any attempt writes them are of before the database's clock was set back: such failures are
# forgotten, and such a lock is over. An attempt that waited for another one's commit finds times ahead of its own
# `now()`, by less than two minutes: the server ends a statement after 15 s.
_ATTEMPT = text(
    """
    INSERT INTO login_attempts AS a (subject, failures, last_at, locked_until)
    VALUES (:subject, 1, now(), now())
    ON CONFLICT (subject) DO UPDATE SET
        failures = CASE
            WHEN a.last_at NOT BETWEEN now() - interval '1 hour' AND now() + interval '2 minutes' THEN 1
            ELSE a.failures + 1
        END,
        last_at = now(),
        locked_until = CASE
            WHEN a.last_at NOT BETWEEN now() - interval '1 hour' AND now() + interval '2 minutes'
                OR a.failures + 1 < :free THEN now()
            ELSE now() + least(interval '15 minutes', interval '30 seconds' * 2 ^ least(a.failures + 1 - :free, 10))
        END
    WHERE a.locked_until <= now() OR a.locked_until > now() + interval '17 minutes'
        OR a.last_at > now() + interval '2 minutes'
    RETURNING failures
    """
)
_EARLIER = (
    select(login_attempts.c.last_at)
    .where(login_attempts.c.subject == bindparam("subject"))
    .with_for_update()
)
# No attempt came after it: as before it, when the subject was not locked.
_TAKE_BACK = text(
    """
    UPDATE login_attempts SET failures = failures - 1, last_at = coalesce(:last_at, last_at), locked_until = now()
    WHERE subject = :subject AND failures = :failures
    """
)
_TAKE_ONE_BACK = text(
    "UPDATE login_attempts SET failures = greatest(failures - 1, 0) WHERE subject = :subject"
)
_FORGET = delete(login_attempts).where(login_attempts.c.subject == bindparam("subject"))
_FORGET_OLD = delete(login_attempts).where(
    is_chosen(
        login_attempts.c.subject,
        select(login_attempts.c.subject)
        .where(
            login_attempts.c.last_at < func.now() - text("interval '1 hour'"),
            login_attempts.c.locked_until < func.now(),
        )
        .limit(FORGOTTEN_AT_ONCE)
        .with_for_update(skip_locked=True),
    )
)


@dataclass(frozen=True, slots=True)
class Counted:
    """An attempt, counted as failed of one subject. `last_at`: of the one before."""

    failures: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to log in, which counts as failed of two subjects: its name and its address."""

    name: bytes
    counted: Mapping[bytes, Counted]


class LockOut:
    """Counts attempts to log in, and refuses those of a name or an address that is locked."""

    def __init__(self, database: Database, lookup: LookupKeys) -> None:
        self._database = database
        self._lookup = lookup

    async def begin(self, name: str, address: str) -> Attempt:
        """Count an attempt.

        Args:
            address: as failures of addresses are counted (`libs.runtime.addresses`).

        Raises:
            RateLimited: the name or the address is locked, with Retry-After; the attempt is not counted.
        """
        by_name, by_address = self._digest("name", name), self._digest("address", address)
        free = {by_name: FAILURES_OF_NAME, by_address: FAILURES_OF_ADDRESS}
        counted = {}
        async with self._database.transaction() as connection:
            for subject in sorted(free):  # two attempts do not wait for each other
                counted[subject] = await _count(connection, subject, free[subject])
        return Attempt(by_name, counted)

    async def succeed(self, attempt: Attempt) -> None:
        """The attempt succeeded: it does not count of its address, and no failure does of its name."""
        async with self._database.transaction() as connection:
            for subject in sorted(attempt.counted):  # in the order of `begin`
                if subject == attempt.name:
                    await connection.execute(_FORGET, {"subject": subject})
                else:
                    await _take_back(connection, subject, attempt.counted[subject])

    async def withdraw(self, attempt: Attempt) -> None:
        """Nothing was compared: the attempt counts neither of its name nor of its address."""
        async with self._database.transaction() as connection:
            for subject in sorted(attempt.counted):
                await _take_back(connection, subject, attempt.counted[subject])

    def _digest(self, kind: str, value: str) -> bytes:
        return self._lookup.digests(f"login/{kind}", value)[0]


async def forget_old_for_ever(database: Database) -> NoReturn:
    await repeat("login-attempts", lambda: forget_old(database), FORGET_SECONDS)


async def forget_old(database: Database) -> None:
    """Delete attempts that count no more, those excepted that another transaction has locked."""
    while await _forget_batch(database) == FORGOTTEN_AT_ONCE:
        pass


async def _forget_batch(database: Database) -> int:
    async with database.transaction() as connection:
        return (await connection.execute(_FORGET_OLD)).rowcount


async def _count(connection: AsyncConnection, subject: bytes, free: int) -> Counted:
    """Count an attempt of a subject.

    Args:
        free: from this number of failures on, each locks the subject.

    Raises:
        RateLimited: it is locked.
    """
    earlier = (await connection.execute(_EARLIER, {"subject": subject})).scalar()
    counted = (await connection.execute(_ATTEMPT, {"subject": subject, "free": free})).first()
    if counted is not None:
        return Counted(counted.failures, earlier)
    row = (await connection.execute(_LOCKED, {"subject": subject})).first()
    left: timedelta = row[0] if row else timedelta()
    seconds = max(1, math.ceil(left.total_seconds()))
    raise RateLimited("Too many attempts to log in failed.", headers={"Retry-After": str(seconds)})


async def _take_back(connection: AsyncConnection, subject: bytes, counted: Counted) -> None:
    """The attempt alone does not count, while those that failed do."""
    taken = await connection.execute(
        _TAKE_BACK,
        {"subject": subject, "failures": counted.failures, "last_at": counted.last_at},
    )
    if taken.rowcount == 0:
        await connection.execute(_TAKE_ONE_BACK, {"subject": subject})
