"""Operators and their roles."""

from typing import Any

from libs.contracts.operating import operators as o
from services.console.declarations import Action, ListPage, Subject


def _is_active(operator: Any) -> bool:
    return operator.revoked_at is None


CREATE = Action(
    title="Create operator",
    path="/operators/create",
    operation=o.CREATE_OPERATOR,
    effect="Makes an operator with a signing key; with `Login` one who may log in here, too, at first with a one-time"
    " password. Both are shown once.",
    done="The operator is created.",
    shown=("name", "role", "subscription_key", "secret", "one_time_password"),
    lost="Without the answer the secret and the one-time password of a new operator are lost, and the name is taken. If"
    " the list has the operator, `Reset login` makes another one-time password, and `bankside operators rotate-key`"
    " another secret.",
)
CHANGE_ROLE = Action(
    title="Change role",
    path="/operators/{name}/role",
    operation=o.CHANGE_ROLE,
    effect="Gives the operator another role, at once and for all of its keys and sessions.",
    done="The role is changed.",
    when=_is_active,
    then="/operators",
)
RESET_LOGIN = Action(
    title="Reset login",
    path="/operators/{name}/reset-login",
    operation=o.RESET_LOGIN,
    effect="Ends the sessions of the operator, and replaces password and authenticator by a one-time password.",
    done="The login is reset.",
    when=_is_active,
    danger=True,
    shown=("name", "one_time_password", "expires_at"),
    then="/operators",
)
REVOKE = Action(
    title="Revoke",
    path="/operators/{name}/revoke",
    operation=o.REVOKE_OPERATOR,
    effect="Ends all keys and sessions of the operator, for good. The name is not free again.",
    done="The operator is revoked.",
    when=_is_active,
    danger=True,
    then="/operators",
)

LIST = ListPage(
    path="/operators",
    title="Operators",
    about="Who may operate this installation.",
    operation=o.LIST_OPERATORS,
    columns=("name", "role", "subscription_keys", "created_at", "last_used_at", "revoked_at"),
    make=(CREATE,),
    each=(CHANGE_ROLE, RESET_LOGIN, REVOKE),
)

SUBJECT = Subject(LIST)
