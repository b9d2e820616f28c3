"""Sessions of operators at a console.

A console asks with a key of its own, whose operator has the role `console`. Its requests carry
`Bankside-Operator-Session`, and act for the operator who has logged in, with that operator's role. They may carry
`Bankside-Operator-Browser`, the address of the operator's browser, which the audit of a write then has.
"""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from libs.contracts import fields as f
from libs.contracts.errors import InvalidState, LoginRefused, SessionEnded
from libs.contracts.model import Command, Model
from libs.contracts.operation import GATEWAY, Operation, RateClass, declared_in
from libs.contracts.principal import Role
from libs.contracts.sensitive import Sensitive

SESSION_HEADER = "Bankside-Operator-Session"
BROWSER_HEADER = "Bankside-Operator-Browser"
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 128
HEADERS = (("session", SESSION_HEADER),)

Password = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_PASSWORD),
    Field(repr=False),
    Sensitive(),
]
NewPassword = Annotated[
    str,
    StringConstraints(min_length=SHORTEST_PASSWORD, max_length=LONGEST_PASSWORD),
    Field(repr=False),
    Sensitive(),
]
Code = Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$"), Sensitive()]
Token = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$"), Sensitive()]


class LogIn(Command):
    """A name with its password; and the code of the authenticator app, unless the password is a one-time password."""

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=64),
        AfterValidator(f.no_control_characters),
        Sensitive(),
    ]
    """Sensitive, since people type passwords here by mistake."""
    password: Password
    """The operator's own, or a one-time password."""
    code: Code | None = None
    """Six digits of the authenticator app; absent with a one-time password."""
    address: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Where the operator's browser is, as the console sees it."""


class Session(Model):
    """A session of an operator who has logged in.

    Args:
        enrolment_needed: it serves for enrolment and for nothing else: the password was a one-time password.
        expires_at: it ends then, and before when it is not used for `idle_seconds`.
    """

    token: Token
    """What proves it: the header of later requests."""
    name: str
    """The operator's name."""
    role: Role
    """The operator's role."""
    enrolment_needed: bool
    expires_at: f.UtcDateTime
    idle_seconds: int
    """It ends after this many seconds without a request."""


class GetSession(Command):
    """Whether a session is still good, and whose it is."""

    session: Token
    """The `token` of the session."""


class SessionView(Model):
    """A session that is good."""

    name: str
    """The operator's name."""
    role: Role
    """The operator's role."""
    enrolment_needed: bool
    """Whether it serves for enrolment and for nothing else."""
    expires_at: f.UtcDateTime
    """When it ends, however much it is used."""


class LogOut(Command):
    """End a session, now."""

    session: Token
    """The `token` of the session."""


class Enrol(Command):
    """A password of the operator's own. Until the enrolment is confirmed, nothing has changed."""

    session: Token
    """The `token` of the session."""
    password: NewPassword
    """The new password."""


class Enrolment(Model):
    """What the authenticator app is to be given: as a QR code, or typed in."""

    otpauth_uri: Annotated[str, Sensitive()]
    """For a QR code."""
    secret: Annotated[str, Sensitive()]
    """To be typed in, in base32."""


class ConfirmEnrolment(Command):
    """A code of the authenticator app."""

    session: Token
    """The `token` of the session."""
    code: Code
    """Six digits of the authenticator app."""


LOG_IN = Operation(
    name=f"{GATEWAY}.log_in",
    method=HTTPMethod.POST,
    path="/operator/sessions",
    for_console=True,
    rate=RateClass.LOG_IN,
    command=LogIn,
    reply=Session,
    errors=(LoginRefused,),
    message="Logged in",
    summary="Begin a session of an operator",
)

GET_SESSION = Operation(
    name=f"{GATEWAY}.get_session",
    method=HTTPMethod.GET,
    path="/operator/sessions/current",
    for_console=True,
    rate=RateClass.SESSION,
    command=GetSession,
    reply=SessionView,
    errors=(SessionEnded,),
    headers=HEADERS,
    message="Session",
    summary="Get the session that the header names",
)

LOG_OUT = Operation(
    name=f"{GATEWAY}.log_out",
    method=HTTPMethod.DELETE,
    path="/operator/sessions/current",
    for_console=True,
    command=LogOut,
    reply=None,
    headers=HEADERS,
    message="Logged out",
    summary="End the session that the header names",
)

ENROL = Operation(
    name=f"{GATEWAY}.enrol",
    method=HTTPMethod.POST,
    path="/operator/sessions/enrolment",
    for_console=True,
    rate=RateClass.LOG_IN,
    command=Enrol,
    reply=Enrolment,
    errors=(InvalidState, SessionEnded),
    headers=HEADERS,
    message="Enrolment begun",
    summary="Choose a password, and get the secret for an authenticator app",
)

CONFIRM_ENROLMENT = Operation(
    name=f"{GATEWAY}.confirm_enrolment",
    method=HTTPMethod.POST,
    path="/operator/sessions/enrolment/confirm",
    for_console=True,
    rate=RateClass.LOG_IN,
    command=ConfirmEnrolment,
    reply=Session,
    errors=(InvalidState, LoginRefused, SessionEnded),
    headers=HEADERS,
    message="Enrolled",
    summary="Confirm the enrolment by a code; the session is then a new one, with the operator's role",
)

OPERATIONS = declared_in(globals(), Operation)
