"""The rows by which a console logs operators in and out."""

from __future__ import annotations

from libs.contracts.errors import SessionEnded
from libs.contracts.operating import sessions as s
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from services.gateway.logins import Logins, Opened, provisioning_uri


class Sessions:
    """The handlers of the rows about sessions."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            s.LOG_IN.name: self._log_in,
            s.GET_SESSION.name: self._get,
            s.LOG_OUT.name: self._log_out,
            s.ENROL.name: self._enrol,
            s.CONFIRM_ENROLMENT.name: self._confirm,
        }

    async def _log_in(self, principal: Principal, command: s.LogIn, _: float) -> Result:
        opened = await self._logins.log_in(
            principal, command.name, command.password, command.code, command.address
        )
        return self._opened(opened)

    async def _get(self, _: Principal, command: s.GetSession, __: float) -> Result:
        found = await self._logins.session(command.session)
        if found is None:
            raise SessionEnded
        return Result(
            s.SessionView(
                name=found.operator,
                role=found.role,
                enrolment_needed=found.enrolment,
                expires_at=found.expires_at,
            )
        )

    async def _log_out(self, principal: Principal, command: s.LogOut, _: float) -> Result:
        await self._logins.log_out(principal, command.session)
        return Result(None)

    async def _enrol(self, _: Principal, command: s.Enrol, __: float) -> Result:
        name, secret = await self._logins.enrol(command.session, command.password)
        return Result(s.Enrolment(otpauth_uri=provisioning_uri(name, secret), secret=secret))

    async def _confirm(self, principal: Principal, command: s.ConfirmEnrolment, _: float) -> Result:
        return self._opened(await self._logins.confirm(principal, command.session, command.code))

    def _opened(self, opened: Opened) -> Result:
        return Result(
            s.Session(
                token=opened.token,
                name=opened.operator,
                role=opened.role,
                enrolment_needed=opened.enrolment_needed,
                expires_at=opened.expires_at,
                idle_seconds=self._logins.idle_seconds,
            )
        )
