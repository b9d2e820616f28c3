"""Logins and sessions as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Interval, LargeBinary, Row, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from libs.contracts.principal import Role
from libs.persistence.async_engine import AsyncConnection
from services.gateway.credentials import CONSOLE
from services.gateway.tables import operator_logins, operator_sessions, operators

SESSIONS_OF_OPERATOR = 10
"""At once; the oldest ends when there is one more."""
LONGEST_UNSEEN = timedelta(seconds=30)
"""That a session was used is noted at most this much later: not each request writes."""


@dataclass(frozen=True, slots=True)
class Login:
    """How an active operator logs in. The secrets of authenticator apps are sealed."""

    operator: str
    role: Role
    password: str
    one_time_until: datetime | None
    totp: str | None
    pending_password: str | None
    pending_totp: str | None


@dataclass(frozen=True, slots=True)
class OneTimePassword:
    """What an operator logs in with for the first time, and no later than `until`."""

    password: str = field(repr=False)
    hashed: str = field(repr=False)
    until: datetime


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session that has not ended."""

    operator: str
    role: Role
    enrolment: bool
    expires_at: datetime


_LOGIN = (
    select(
        operator_logins.c.operator,
        operators.c.role,
        operator_logins.c.password,
        operator_logins.c.one_time_until,
        operator_logins.c.totp,
        operator_logins.c.pending_password,
        operator_logins.c.pending_totp,
    )
    .join(operators, operators.c.name == operator_logins.c.operator)
    .where(operator_logins.c.operator == bindparam("name"), operators.c.revoked_at.is_(None))
)
_LOCKED_LOGIN = _LOGIN.with_for_update(of=operator_logins)
_RESET = insert(operator_logins).values(
    operator=bindparam("name"), password=bindparam("hash"), one_time_until=bindparam("until")
)
_RESET = _RESET.on_conflict_do_update(
    index_elements=[operator_logins.c.operator],
    set_={
        "password": _RESET.excluded.password,
        "one_time_until": _RESET.excluded.one_time_until,
        "totp": None,
        "pending_password": None,
        "pending_totp": None,
    },
)
_USE_STEP = (
    update(operator_logins)
    .where(
        operator_logins.c.operator == bindparam("name"),
        operator_logins.c.last_step < bindparam("step"),
    )
    .values(last_step=bindparam("step"))
)
_PEND = (
    update(operator_logins)
    .where(operator_logins.c.operator == bindparam("name"))
    .values(pending_password=bindparam("hash"), pending_totp=bindparam("sealed"))
)
_CONFIRM = (
    update(operator_logins)
    .where(operator_logins.c.operator == bindparam("name"))
    .values(
        password=operator_logins.c.pending_password,
        totp=operator_logins.c.pending_totp,
        one_time_until=None,
        pending_password=None,
        pending_totp=None,
        last_step=bindparam("step"),
    )
)
_IDLE = bindparam("idle", type_=Interval)
_SESSION = (
    select(
        operator_sessions.c.operator,
        operators.c.role,
        operator_sessions.c.enrolment,
        operator_sessions.c.expires_at,
        (operator_sessions.c.last_seen_at < func.now() - bindparam("unseen", type_=Interval)).label(
            "stale"
        ),
    )
    .join(operators, operators.c.name == operator_sessions.c.operator)
    .where(
        operator_sessions.c.digest == bindparam("digest", type_=LargeBinary),
        operators.c.revoked_at.is_(None),
        operator_sessions.c.expires_at > func.now(),
        operator_sessions.c.last_seen_at > func.now() - _IDLE,
    )
)
_SEEN = (
    update(operator_sessions)
    .where(operator_sessions.c.digest == bindparam("wanted"))
    .values(last_seen_at=func.now())
)
_ADD_SESSION = insert(operator_sessions)
_END = (
    delete(operator_sessions)
    .where(operator_sessions.c.digest == bindparam("digest"))
    .returning(operator_sessions.c.operator)
)
_END_ALL = delete(operator_sessions).where(operator_sessions.c.operator == bindparam("name"))
_END_OVER = delete(operator_sessions).where(
    (operator_sessions.c.expires_at <= func.now())
    | (operator_sessions.c.last_seen_at <= func.now() - _IDLE)
)
_NEWEST = (
    select(operator_sessions.c.digest)
    .where(operator_sessions.c.operator == bindparam("name"))
    .order_by(operator_sessions.c.created_at.desc(), operator_sessions.c.digest)
    .limit(SESSIONS_OF_OPERATOR)
    .scalar_subquery()
)
_END_OLDEST = delete(operator_sessions).where(
    operator_sessions.c.operator == bindparam("name"), operator_sessions.c.digest.not_in(_NEWEST)
)


async def find_login(connection: AsyncConnection, name: str) -> Login | None:
    """Of an active operator who may log in."""
    return _login((await connection.execute(_LOGIN, {"name": name})).first())


async def lock_login(connection: AsyncConnection, name: str) -> Login | None:
    """The same, kept from others until the end of the transaction."""
    return _login((await connection.execute(_LOCKED_LOGIN, {"name": name})).first())


def _login(row: Row[*tuple[Any, ...]] | None) -> Login | None:
    if row is None or row.role == CONSOLE:
        return None
    values = row._asdict()
    return Login(**{**values, "role": Role(row.role)})


async def set_one_time_password(
    connection: AsyncConnection, name: str, one_time: OneTimePassword
) -> None:
    """In place of any login that there was."""
    values = {"name": name, "hash": one_time.hashed, "until": one_time.until}
    await connection.execute(_RESET, values)


async def use_step(connection: AsyncConnection, name: str, step: int) -> bool:
    """False when a code of this time or a later one was used before."""
    updated = await connection.execute(_USE_STEP, {"name": name, "step": step})
    return updated.rowcount == 1


async def pend(connection: AsyncConnection, name: str, hashed: str, totp: str) -> None:
    await connection.execute(_PEND, {"name": name, "hash": hashed, "sealed": totp})


async def confirm(connection: AsyncConnection, name: str, step: int) -> None:
    await connection.execute(_CONFIRM, {"name": name, "step": step})


async def find_session(
    connection: AsyncConnection, digest: bytes, idle: timedelta
) -> StoredSession | None:
    """One that has not ended; that it was used is noted."""
    unseen = min(LONGEST_UNSEEN, idle / 4)
    found = await connection.execute(_SESSION, {"digest": digest, "idle": idle, "unseen": unseen})
    row = found.first()
    if row is None:
        return None
    if row.stale:
        await connection.execute(_SEEN, {"wanted": digest})
    return StoredSession(row.operator, Role(row.role), row.enrolment, row.expires_at)


async def add_session(
    connection: AsyncConnection,
    digest: bytes,
    name: str,
    expires_at: datetime,
    idle: timedelta,
    *,
    enrolment: bool,
) -> None:
    """Sessions that are over go, and of the operator's the oldest beyond `SESSIONS_OF_OPERATOR`."""
    await connection.execute(_END_OVER, {"idle": idle})
    values = {
        "digest": digest,
        "operator": name,
        "enrolment": enrolment,
        "expires_at": expires_at,
    }
    await connection.execute(_ADD_SESSION, values)
    await connection.execute(_END_OLDEST, {"name": name})


async def end_session(connection: AsyncConnection, digest: bytes) -> str | None:
    """Whose it was; None when there is none."""
    row = (await connection.execute(_END, {"digest": digest})).first()
    return row.operator if row else None


async def end_sessions(connection: AsyncConnection, name: str) -> None:
    await connection.execute(_END_ALL, {"name": name})
