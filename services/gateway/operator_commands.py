"""`bankside operators …`: who operates the stack, and with which keys."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from libs.cli.database import in_transaction, record
from libs.cli.decisions import Flag, is_agreed
from libs.cli.output import console, escape, print_json
from libs.cli.rotation import OVERLAP_HOURS, end_of_old_secret, overlap, told_when_lost
from libs.cli.secret import show_once
from libs.client.credentials import check_can_save
from libs.client.errors import OperatorError
from libs.client.operator_client import ask, checked
from libs.contracts.operating import operators as o
from libs.contracts.operating.pages import Order
from libs.persistence.async_engine import AsyncConnection
from services.gateway import new_keys
from services.gateway import operator_repository as repository
from services.gateway.login_repository import end_sessions, set_one_time_password
from services.gateway.logins import new_one_time_password
from services.gateway.passwords import Passwords
from services.gateway.settings import Settings

SERVICE = "gateway"
LISTED = 200

Key = Annotated[str | None, Parameter(name="--key")]
SaveAs = Annotated[str | None, Parameter(name="--save")]

app = App(
    name="operators",
    help="Operators, their keys and logins: create, list, revoke, revoke-key, rotate-key, role, reset-login.",
)


@app.command
def create(
    name: str,
    /,
    *,
    role: o.OperatorRole,
    reason: str = "created at the command line",
    login: Flag = False,
    at_database: Annotated[bool, Parameter(negative="")] = False,
    save_as: SaveAs = None,
    key: Key = None,
    json: Flag = False,
) -> None:
    """Make an operator with a key, and show its secret, once.

    Such as `bankside operators create ada --role admin --login`.

    Args:
        name: Lower-case letters, digits, '-' and '_'.
        role: viewer reads, operator acts, admin also manages keys and operators; console is for a console, whose
            requests act for those who log in there.
        reason: For the audit.
        login: Also let the operator log in at the console, at first with a one-time password.
        at_database: Make it in the gateway's database instead of asking the gateway: for the first operator, or when no
            admin's key is left. An operator who exists gets a further key.
        save_as: Keep the key under this name for --key.
        key: The key to ask with: a saved name or a subscription key.
        json: Print one JSON document.
    """
    if save_as:
        check_can_save(save_as)
    command = checked(
        o.CreateOperator, {"name": name, "role": role, "reason": reason, "login": login}
    )
    made = (
        _created_at_database(command) if at_database else ask(o.CREATE_OPERATOR, command, key=key)
    )
    show_once(made, save_as, json=json)


def _created_at_database(command: o.CreateOperator) -> o.CreatedOperator:
    name, role = command.name, command.role
    ring = Settings.load().ring("storage_keys")

    async def work(connection: AsyncConnection) -> tuple[str, str, str | None]:
        one_time = await new_one_time_password(Passwords()) if command.login else None
        if not await repository.add_operator(connection, name, role):
            existing = await repository.lock_role(connection, name)
            if existing != role:
                raise OperatorError(
                    f"There is or was an operator {name} who is not {role}: take another name."
                )
        made = await new_keys.add_key(connection, ring, name)
        if one_time is not None:
            await set_one_time_password(connection, name, one_time)
            await end_sessions(connection, name)
        await record(
            connection,
            "operators.create",
            operator=name,
            role=role,
            subscription_key=made[0],
            reason=command.reason,
        )
        return *made, one_time.password if one_time else None

    subscription_key, secret, one_time_password = in_transaction(
        SERVICE,
        work,
        when_lost=f"The answer of the database is lost: {name} may have been made, with a key whose secret is lost. "
        "Repeat this, which gives a further key; then end a key that `bankside operators list` shows besides, by "
        "`bankside operators revoke-key`.",
    )
    return o.CreatedOperator(
        name=name,
        role=role,
        subscription_key=subscription_key,
        secret=secret,
        one_time_password=one_time_password,
    )


@app.command(name="list")
def list_operators(*, key: Key = None, json: Flag = False) -> None:
    """Show the operators, the oldest first.

    Such as `bankside operators list`.
    """
    found: list[o.OperatorView] = []
    command = o.ListOperators(limit=LISTED, order=Order.OLDEST)
    while True:
        page = ask(o.LIST_OPERATORS, command, key=key)
        found += page.items
        if page.next is None:
            break
        command = o.ListOperators(limit=LISTED, order=Order.OLDEST, after=page.next)
    if json:
        print_json([item.model_dump() for item in found])
        return
    for item in found:
        state = "revoked" if item.revoked_at else "active"
        used = f"used {item.last_used_at:%Y-%m-%d %H:%MZ}" if item.last_used_at else "never used"
        console().print(
            f"{item.name}  {item.role}  {state}  {used}  {' '.join(item.subscription_keys)}".rstrip()
        )


@app.command
def revoke(
    name: str,
    /,
    *,
    reason: str = "revoked at the command line",
    yes: Flag = False,
    key: Key = None,
    json: Flag = False,
) -> int:
    """End all keys of an operator, for good; they are refused within two seconds. The name is never free again.

    Such as `bankside operators revoke ada --reason "left"`.

    Args:
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = checked(o.RevokeOperator, {"name": name, "reason": reason})
    if not is_agreed(f"End all keys of {escape(name)}, for good?", yes=yes, json=json):
        return 1
    _changed(ask(o.REVOKE_OPERATOR, command, key=key), json)
    return 0


@app.command(name="revoke-key")
def revoke_key(
    name: str,
    subscription_key: str,
    /,
    *,
    reason: str = "revoked at the command line",
    yes: Flag = False,
    key: Key = None,
    json: Flag = False,
) -> int:
    """End one key of an operator, for good; it is refused within two seconds. Other keys and logins stay.

    Such as `bankside operators revoke-key ada sub_… --reason "laptop lost"`.

    Args:
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    values = {"name": name, "subscription_key": subscription_key, "reason": reason}
    command = checked(o.RevokeOperatorKey, values)
    question = f"End the key {escape(subscription_key)} of {escape(name)}, for good?"
    if not is_agreed(question, yes=yes, json=json):
        return 1
    operator = ask(o.REVOKE_OPERATOR_KEY, command, key=key)
    if json:
        print_json(operator.model_dump())
    else:
        console().print(f"{subscription_key} is revoked.")
    return 0


@app.command(name="rotate-key")
def rotate_key(
    name: str,
    subscription_key: str,
    /,
    *,
    overlap_hours: float = OVERLAP_HOURS,
    reason: str = "rotated at the command line",
    save_as: SaveAs = None,
    key: Key = None,
    json: Flag = False,
) -> None:
    """Give a key of an operator a new secret, and show it, once; the old one stays valid for the overlap.

    Such as `bankside operators rotate-key ada sub_… --overlap-hours 0`. A key has two secrets at most: a second
    rotation within the overlap ends the first secret at once.

    Args:
        overlap_hours: How long the old secret still signs; 0 ends it at once.
        save_as: Keep the new secret under this name for --key. A copy that was saved before, under this or another
            name, has the old secret until it is saved anew.
    """
    values = {"overlap_hours": overlap(overlap_hours), "reason": reason}
    if save_as:
        check_can_save(save_as)
    identity = {"name": name, "subscription_key": subscription_key}
    command = checked(o.RotateOperatorKey, identity | values)
    with told_when_lost(subscription_key):
        rotated = ask(o.ROTATE_OPERATOR_KEY, command, key=key)
    show_once(rotated, save_as, json=json)
    if not json:
        console().print(end_of_old_secret(overlap_hours))


@app.command(name="role")
def change_role(
    name: str,
    role: str,
    /,
    *,
    reason: str = "changed at the command line",
    key: Key = None,
    json: Flag = False,
) -> None:
    """Give an operator another role: viewer, operator or admin.

    Such as `bankside operators role ada operator`.
    """
    command = checked(o.ChangeRole, {"name": name, "role": role, "reason": reason})
    _changed(ask(o.CHANGE_ROLE, command, key=key), json)


@app.command(name="reset-login")
def reset_login(
    name: str,
    /,
    *,
    reason: str = "reset at the command line",
    yes: Flag = False,
    key: Key = None,
    json: Flag = False,
) -> int:
    """Give an operator a one-time password for the console, in place of password and authenticator app.

    Such as `bankside operators reset-login ada --reason "lost telephone"`.

    Args:
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = checked(o.ResetLogin, {"name": name, "reason": reason})
    question = f"End the sessions, the password and the authenticator app of {escape(name)}?"
    if not is_agreed(question, yes=yes, json=json):
        return 1
    made = ask(o.RESET_LOGIN, command, key=key)
    if json:
        print_json(made.model_dump())
        return 0
    console().print(f"one_time_password {made.one_time_password}")
    console().print(f"It is not shown again, and valid until {made.expires_at:%Y-%m-%d %H:%MZ}.")
    return 0


def _changed(operator: o.OperatorView, json: bool) -> None:
    if json:
        print_json(operator.model_dump())
    else:
        state = "revoked" if operator.revoked_at else operator.role
        console().print(f"{operator.name} is {state}.")
