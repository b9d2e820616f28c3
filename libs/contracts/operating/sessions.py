"""Sessions of operators at the console.

A console asks with its own key, of role `console`, and names the session of an operator in the header
`Bankside-Operator-Session`: it then acts as that operator. The session is here, the browser has its token.
"""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated

from pydantic import Field, StringConstraints

from libs.contracts import fields as f
from libs.contracts.errors import LoginRefused, RateLimited, SessionEnded
from libs.contracts.model import Command, Model
from libs.contracts.operation import GATEWAY, Operation, declared_in
from libs.contracts.principal import Role
from libs.contracts.sensitive import Sensitive

SESSION_HEADER = "Bankside-Operator-Session"
SHORTEST_PASSWORD = 12

LoginName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
LoginPassword = Annotated[str, StringConstraints(min_length=1, max_length=256), Sensitive()]
NewPassword = Annotated[
    str, StringConstraints(min_length=SHORTEST_PASSWORD, max_length=256), Sensitive()
]
LoginCode = Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$"), Sensitive()]
"""Of the operator's authenticator (TOTP); each passes once."""


class BeginSession(Command):
    """Log an operator in.

    Args:
        code: null at the first log-in, with a one-time password.
        address: the browser's, for the lock-out and the audit.
    """

    name: LoginName
    password: LoginPassword
    code: LoginCode | None = None
    address: Annotated[str, StringConstraints(max_length=64)] | None = None


class BegunSession(Model):
    """A session. With `must_enrol` it is good for the enrolment alone."""

    token: Annotated[str, Sensitive()]
    name: str
    role: Annotated[Role, Field(strict=False)]
    expires_at: f.UtcDateTime
    must_enrol: bool


class GetSession(Command):
    """The session of the header."""


class SessionView(Model):
    """`expires_at`: when nothing is asked until then."""

    name: str
    role: Annotated[Role, Field(strict=False)]
    expires_at: f.UtcDateTime
    must_enrol: bool


class EndSession(Command):
    """Log out."""


class EnrolLogin(Command):
    """A password of the operator's own in place of the one-time password, and a new authenticator."""

    password: NewPassword


class LoginEnrolment(Model):
    """What the authenticator is to be given; it counts once a code confirms it.

    Args:
        uri: `otpauth://totp/…`, which QR codes hold.
        secret: the same to type, in Base32.
    """

    uri: Annotated[str, Sensitive()]
    secret: Annotated[str, Sensitive()]


class ConfirmEnrolment(Command):
    code: LoginCode


BEGIN_SESSION = Operation(
    name=f"{GATEWAY}.begin_session",
    method=HTTPMethod.POST,
    path="/operator/sessions",
    role=Role.VIEWER,
    command=BeginSession,
    reply=BegunSession,
    errors=(LoginRefused, RateLimited),
    message="Logged in",
    summary="Log an operator in at a console; for keys of consoles alone",
)
GET_SESSION = Operation(
    name=f"{GATEWAY}.get_session",
    method=HTTPMethod.GET,
    path="/operator/sessions/current",
    role=Role.VIEWER,
    command=GetSession,
    reply=SessionView,
    errors=(SessionEnded,),
    message="Session found",
    summary="Get the session that the request names",
)
END_SESSION: Operation[EndSession, None] = Operation(
    name=f"{GATEWAY}.end_session",
    method=HTTPMethod.DELETE,
    path="/operator/sessions/current",
    role=Role.VIEWER,
    command=EndSession,
    reply=None,
    errors=(SessionEnded,),
    message="Logged out",
    summary="End the session that the request names",
)
ENROL_LOGIN = Operation(
    name=f"{GATEWAY}.enrol_login",
    method=HTTPMethod.POST,
    path="/operator/sessions/enrolment",
    role=Role.VIEWER,
    command=EnrolLogin,
    reply=LoginEnrolment,
    errors=(SessionEnded,),
    message="Confirm with a code",
    summary="Set the password and begin to enrol an authenticator, in a session that must",
)
CONFIRM_ENROLMENT = Operation(
    name=f"{GATEWAY}.confirm_enrolment",
    method=HTTPMethod.POST,
    path="/operator/sessions/enrolment/confirm",
    role=Role.VIEWER,
    command=ConfirmEnrolment,
    reply=BegunSession,
    errors=(SessionEnded, LoginRefused),
    message="Enrolled",
    summary="Confirm the authenticator with its first code; a new session begins",
)

OPERATIONS = declared_in(globals(), Operation)
