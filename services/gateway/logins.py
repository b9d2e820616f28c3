"""Logging operators in at a console: password and code, enrolment, sessions; `lock_out` has how failures lock.

| step | |
|---|---|
| a one-time password | begins a session of a quarter of an hour that serves for enrolment alone, and ends one before |
| enrolment | a password of the operator's own, a secret for an authenticator app; in force once a code confirms them |
| password and code (TOTP, RFC 6238) | begin a session; each code counts once, those before it no more |
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest

import msgspec
import pyotp

from libs.contracts.errors import (
    BanksideError,
    Invalid,
    InvalidState,
    LoginRefused,
    RateLimited,
    SessionEnded,
    Unavailable,
)
from libs.contracts.principal import Principal, Role
from libs.persistence import audit
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit import Entry
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring, LookupKeys
from libs.runtime.addresses import counted_as, parsed_address
from services.gateway import login_repository as repository
from services.gateway.lock_out import LockOut
from services.gateway.login_repository import Login, OneTimePassword, StoredSession
from services.gateway.passwords import Passwords
from services.gateway.refusals import Refusals

ENROLMENT_SECONDS = 15 * 60
ONE_TIME_HOURS = 72
STEP_SECONDS = 30
ISSUER = "Bankside"
LOG_IN_ACTION = "sessions.log_in"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def totp_context(operator: str) -> str:
    """What a sealed secret of an authenticator app is bound to."""
    return f"operator/{operator}#totp"


def session_digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that began."""

    token: str
    operator: str
    role: Role
    enrolment_needed: bool
    expires_at: datetime


class Logins:
    """Logs operators in and enrols them, and finds and ends their sessions.

    Args:
        clock: of codes.
    """

    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        lookup: LookupKeys,
        passwords: Passwords,
        refusals: Refusals,
        *,
        session_seconds: float,
        idle_seconds: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._lock_out = LockOut(database, lookup)
        self._passwords = passwords
        self._refusals = refusals
        self._session = timedelta(seconds=session_seconds)
        self._idle = timedelta(seconds=idle_seconds)
        self._clock = clock

    @property
    def idle_seconds(self) -> int:
        return int(self._idle.total_seconds())

    async def session(self, token: str) -> StoredSession | None:
        """The session of a token, unless it has ended."""
        async with self._database.transaction() as connection:
            return await self._session_of(connection, token)

    async def _session_of(self, connection: AsyncConnection, token: str) -> StoredSession | None:
        if not _TOKEN.fullmatch(token):
            return None
        return await repository.find_session(connection, session_digest(token), self._idle)

    async def log_in(
        self, principal: Principal, name: str, password: str, code: str | None, address: str | None
    ) -> Opened:
        """Begin a session.

        Args:
            address: of the browser, as the console sees it.

        Raises:
            RateLimited: the name or the address is locked, with Retry-After.
            LoginRefused: the name, the password or the code is not right; which one is not told.
            Unavailable: too many others log in at this moment; the attempt does not count.
        """
        browser = parsed_address(address or "")
        principal = msgspec.structs.replace(principal, browser=browser)
        address = browser or principal.address or ""
        try:
            attempt = await self._lock_out.begin(name, counted_as(address))
        except RateLimited as locked:
            self._refused(principal, None, locked)
            raise
        async with self._database.transaction() as connection:
            login = await repository.find_login(connection, name)
        try:
            is_right = await self._passwords.matches(login.password if login else None, password)
        except Unavailable:
            await self._lock_out.withdraw(attempt)
            raise
        opened = None
        if login is not None and is_right:
            opened = await self._open(principal, login, code)
        if opened is None:
            refusal = LoginRefused()
            self._refused(principal, login, refusal)
            raise refusal
        await self._lock_out.succeed(attempt)
        return opened

    async def _open(self, principal: Principal, found: Login, code: str | None) -> Opened | None:
        """None: the code is not right, the one-time password too old, or the login was changed meanwhile."""
        now, name = self._clock(), found.operator
        async with self._database.transaction() as connection:
            login = await repository.lock_login(connection, name)
            if login is None or login.password != found.password:
                return None
            if login.one_time_until is not None:
                if login.one_time_until <= now:
                    return None
                expires_at = now + timedelta(seconds=ENROLMENT_SECONDS)
                await repository.end_sessions(connection, name)
            else:
                step = self._step(name, login.totp, code)
                if step is None or not await repository.use_step(connection, name, step):
                    return None
                expires_at = now + self._session
            opened = Opened(
                token=secrets.token_urlsafe(32),
                operator=name,
                role=login.role,
                enrolment_needed=login.one_time_until is not None,
                expires_at=expires_at,
            )
            await self._add(connection, opened)
            await _record(connection, principal, name, LOG_IN_ACTION)
        return opened

    async def enrol(self, token: str, password: str) -> tuple[str, str]:
        """Keep a password and the secret of an authenticator app until they are confirmed.

        Returns:
            The operator's name and the secret.

        Raises:
            SessionEnded: there is no such session.
            InvalidState: the session is not for enrolment.
            Invalid: the password is the one-time password.
        """
        name = await self._enrolling(token)
        hashed = await self._passwords.hashed(password)
        async with self._database.transaction() as connection:
            login = await self._lock_enrolment(connection, name, token)
        if await self._passwords.matches(login.password, password):
            rule = "not the one-time password again"
            raise Invalid([{"loc": ["body", "password"], "msg": rule, "type": "value_error"}])
        secret = pyotp.random_base32()
        sealed = self._keyring.seal(secret, totp_context(name))
        async with self._database.transaction() as connection:
            await self._lock_enrolment(connection, name, token)
            await repository.pend(connection, name, hashed, sealed)
        return name, secret

    async def confirm(self, principal: Principal, token: str, code: str) -> Opened:
        """Put what is pending in force, and begin a session in place of all that the operator had.

        Raises:
            SessionEnded, InvalidState: as `enrol`; InvalidState also where nothing is pending.
            LoginRefused: the code is not of the secret that is pending.
        """
        name = await self._enrolling(token)
        async with self._database.transaction() as connection:
            login = await self._lock_enrolment(connection, name, token)
            if login.pending_totp is None:
                raise InvalidState("Choose a password first.")
            step = self._step(name, login.pending_totp, code)
            if step is None:
                raise LoginRefused
            opened = Opened(
                token=secrets.token_urlsafe(32),
                operator=name,
                role=login.role,
                enrolment_needed=False,
                expires_at=self._clock() + self._session,
            )
            await repository.confirm(connection, name, step)
            await repository.end_sessions(connection, name)
            await self._add(connection, opened)
            await _record(connection, principal, name, "sessions.enrol")
        return opened

    async def log_out(self, principal: Principal, token: str) -> None:
        """Nothing, where there is no such session."""
        async with self._database.transaction() as connection:
            operator = await repository.end_session(connection, session_digest(token))
            if operator is not None:
                await _record(connection, principal, operator, "sessions.log_out")

    async def _enrolling(self, token: str) -> str:
        """The operator's name."""
        session = await self.session(token)
        if session is None:
            raise SessionEnded
        if not session.enrolment:
            raise InvalidState("This session is not for enrolment.")
        return session.operator

    async def _lock_enrolment(self, connection: AsyncConnection, name: str, token: str) -> Login:
        """The login, locked: a reset of it, which ends the session, comes before or after this transaction."""
        login = await repository.lock_login(connection, name)
        if login is None or await self._session_of(connection, token) is None:
            raise SessionEnded
        return login

    async def _add(self, connection: AsyncConnection, opened: Opened) -> None:
        await repository.add_session(
            connection,
            session_digest(opened.token),
            opened.operator,
            opened.expires_at,
            self._idle,
            enrolment=opened.enrolment_needed,
        )

    def _step(self, operator: str, sealed: str | None, code: str | None) -> int | None:
        """The time step of a code, at most one away from now; None: it is not right."""
        if sealed is None or code is None:
            return None
        totp = pyotp.TOTP(self._keyring.open(sealed, totp_context(operator)))
        now = int(self._clock().timestamp()) // STEP_SECONDS
        steps = [
            step
            for step in (now - 1, now, now + 1)
            if compare_digest(totp.generate_otp(step), code)
        ]
        return max(steps, default=None)

    def _refused(self, principal: Principal, login: Login | None, error: BanksideError) -> None:
        """A name that no operator has is not kept: it may be a password."""
        claimed = msgspec.structs.replace(principal, operator=login.operator if login else None)
        self._refusals.known(error, counted_as(principal.address or ""), claimed, LOG_IN_ACTION)


def provisioning_uri(operator: str, secret: str) -> str:
    """What an authenticator app reads off a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=operator, issuer_name=ISSUER)


async def new_one_time_password(passwords: Passwords) -> OneTimePassword:
    password = secrets.token_urlsafe(18)
    until = datetime.now(UTC) + timedelta(hours=ONE_TIME_HOURS)
    return OneTimePassword(password, await passwords.hashed(password), until)


async def _record(
    connection: AsyncConnection,
    principal: Principal,
    operator: str,
    action: str,
) -> None:
    entry = Entry(
        actor=f"operator:{operator}",
        action=action,
        outcome="ok",
        address=principal.address,
        request_id=principal.request_id,
        key=principal.subscription_key,
        browser=principal.browser,
        subject={"console": principal.operator},
    )
    await audit.append(connection, [entry])
