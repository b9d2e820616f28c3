"""Operators and their keys."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from http import HTTPMethod
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from libs.contracts import fields as f
from libs.contracts.errors import AlreadyExists, InvalidState
from libs.contracts.model import BrokenRule, Model
from libs.contracts.operating.keys import LONGEST_OVERLAP_HOURS
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import GATEWAY, Operation, declared_in
from libs.contracts.principal import Role
from libs.contracts.sensitive import Sensitive

OperatorName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]

OperatorRole = Literal["viewer", "operator", "admin", "console"]
"""`console`: not a person, but a console, whose requests act for the operator who has logged in there."""


LoginState = Literal["one_time_password", "expired", "enrolled"]
"""A one-time password that can be used, one whose time is over, or a password of its own with an authenticator app."""


class ListOperators(ListPage):
    """The operators, revoked ones included."""


class OperatorView(Model):
    """An operator, without secrets."""

    name: str
    """By which the audit names it."""
    role: OperatorRole
    """What it may do."""
    subscription_keys: list[str]
    """Those that are active."""
    created_at: f.UtcDateTime
    revoked_at: f.UtcDateTime | None
    """When its keys were ended for good; null: they were not."""
    last_used_at: f.UtcDateTime | None
    """The minute of the latest request with one of its keys."""
    login: LoginState | None = None  # as at a release without logins
    """How it logs in at a console; null of one that does not."""


class CreateOperator(Write):
    """A new operator, with a key. A name that was used before is not free again: the audit has it."""

    name: OperatorName
    """By which the audit will name it."""
    role: OperatorRole
    """What it may do."""
    login: bool = False
    """Whether the operator may log in at a console too, at first with a one-time password."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        if values.get("role") == "console" and values.get("login") is True:
            return [(("login",), "a console does not log in, operators do")]
        return []


class CreatedOperator(Model):
    """Neither the secret nor the one-time password is shown again."""

    name: str
    """By which the audit names it."""
    role: OperatorRole
    """What it may do."""
    subscription_key: str
    secret: Annotated[str, Sensitive()]
    """What requests are signed with."""
    one_time_password: Annotated[str, Sensitive()] | None
    """For the first login at a console; null of an operator who does not log in."""


class ResetLogin(Write):
    """End the sessions of an operator and replace password and authenticator app by a one-time password."""

    name: str
    """The operator's name."""


class OneTimePassword(Model):
    """It is not shown again."""

    name: str
    """The operator's name."""
    one_time_password: Annotated[str, Sensitive()]
    """For the next login at a console."""
    expires_at: f.UtcDateTime
    """Until when it can be used."""


class RevokeOperator(Write):
    """End all keys of an operator, for good."""

    name: str
    """The operator's name."""


class RevokeOperatorKey(Write):
    """End one key of an operator, for good. Its other keys and its sessions stay."""

    name: str
    """The operator's name."""
    subscription_key: str


class RotateOperatorKey(Write):
    """Give a key of an operator a new secret; the one before stays valid for the overlap."""

    name: str
    """The operator's name."""
    subscription_key: str
    overlap_hours: Annotated[f.Number, Field(ge=0, le=LONGEST_OVERLAP_HOURS)] = Decimal(24)
    """For how many hours the secret before stays valid."""


class OperatorKeySecret(Model):
    """The secret is not shown again."""

    name: str
    """The operator's name."""
    subscription_key: str
    secret: Annotated[str, Sensitive()]
    """What requests are signed with."""


class ChangeRole(Write):
    """Give an operator another role."""

    name: str
    """The operator's name."""
    role: Literal["viewer", "operator", "admin"]
    """What it may do from now on."""


LIST_OPERATORS = Operation(
    name=f"{GATEWAY}.list_operators",
    method=HTTPMethod.GET,
    path="/operator/operators",
    role=Role.VIEWER,
    command=ListOperators,
    reply=Listed[OperatorView],
    message="Operators",
    summary="List the operators",
)

CREATE_OPERATOR = Operation(
    name=f"{GATEWAY}.create_operator",
    method=HTTPMethod.POST,
    path="/operator/operators",
    role=Role.ADMIN,
    command=CreateOperator,
    reply=CreatedOperator,
    errors=(AlreadyExists,),
    message="Operator created",
    summary="Make an operator with a key",
)

REVOKE_OPERATOR = Operation(
    name=f"{GATEWAY}.revoke_operator",
    method=HTTPMethod.POST,
    path="/operator/operators/{name}/revoke",
    role=Role.ADMIN,
    command=RevokeOperator,
    reply=OperatorView,
    errors=(InvalidState,),
    message="Operator revoked",
    summary="End all keys and sessions of an operator; the last admin stays",
)

REVOKE_OPERATOR_KEY = Operation(
    name=f"{GATEWAY}.revoke_operator_key",
    method=HTTPMethod.POST,
    path="/operator/operators/{name}/keys/{subscription_key}/revoke",
    role=Role.ADMIN,
    command=RevokeOperatorKey,
    reply=OperatorView,
    errors=(InvalidState,),
    message="Key revoked",
    summary="End one key of an operator; an admin with a key stays",
)

ROTATE_OPERATOR_KEY = Operation(
    name=f"{GATEWAY}.rotate_operator_key",
    method=HTTPMethod.POST,
    path="/operator/operators/{name}/keys/{subscription_key}/rotate",
    role=Role.ADMIN,
    command=RotateOperatorKey,
    reply=OperatorKeySecret,
    message="Key rotated",
    summary="Give a key of an operator a new secret",
)

CHANGE_ROLE = Operation(
    name=f"{GATEWAY}.change_operator_role",
    method=HTTPMethod.POST,
    path="/operator/operators/{name}/role",
    role=Role.ADMIN,
    command=ChangeRole,
    reply=OperatorView,
    errors=(InvalidState,),
    message="Role changed",
    summary="Give an operator another role; one admin stays",
)

RESET_LOGIN = Operation(
    name=f"{GATEWAY}.reset_operator_login",
    method=HTTPMethod.POST,
    path="/operator/operators/{name}/reset-login",
    role=Role.ADMIN,
    command=ResetLogin,
    reply=OneTimePassword,
    errors=(InvalidState,),
    message="Login reset",
    summary="Give an operator a one-time password for the console, in place of any login",
)

OPERATIONS = declared_in(globals(), Operation)
