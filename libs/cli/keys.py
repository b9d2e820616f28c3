"""`bankside keys …`: subscription keys of partners and of their customers."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar
from uuid import UUID

from cyclopts import App, Parameter

from libs.cli.decisions import (
    Flag,
    agrees,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import console, print_json
from libs.cli.reseal import reseal
from libs.cli.rotation import (
    OVERLAP_HOURS,
    end_of_old_secret,
    minute,
    overlap,
    told_when_lost,
)
from libs.cli.secret import show_once
from libs.client.credentials import check_can_save
from libs.client.errors import OperatorError
from libs.client.operator_client import ask, checked
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating import keys as k
from libs.contracts.operating.pages import Order

LISTED = 200
SHOWN = (
    "subscription_key",
    "tenant",
    "family",
    "customer_id",
    "scopes",
    "allowed_networks",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
    "previous_secret_expires_at",
)

Sign = Annotated[str | None, Parameter(name="--sign-with")]
T = TypeVar("T")

app = App(
    name="keys",
    help="Subscription keys: create, list, revoke, rotate, scopes, allow; reseal what is stored.",
)
app.command(reseal)


@app.command
def create(
    *,
    family: k.KeyFamily,
    tenant: str | None = None,
    customer: UUID | None = None,
    tenant_name: str | None = None,
    reads_per_minute: int = 6000,
    writes_per_minute: int = 600,
    wires_per_minute: int = 60,
    require_idempotency_key: bool | None = None,
    scope: Annotated[list[str] | None, Parameter(negative="")] = None,
    allow: Annotated[list[str] | None, Parameter(negative="")] = None,
    expires: str | None = None,
    reason: str = "bankside keys create",
    save_as: Annotated[str | None, Parameter(name="--save")] = None,
    sign_with: Sign = None,
    json: Flag = False,
) -> None:
    """Make a key and show its secret, once.

    Such as `bankside keys create --family partner --tenant acme --save acme`, or `bankside keys create --family
    customer --customer CUSTOMER_ID --scope accounts:read --expires 90d`.

    Args:
        family: Which routes it may use: partner (all of the tenant's customers) or customer (one of them).
        tenant: The partner, made when it is new. For a customer's key it follows from the customer.
        customer: The customer of a customer's key: the customer_id from onboarding.
        tenant_name: The name of a new partner; its id when not given.
        require_idempotency_key: Refuse writes without an Idempotency-Key. When not given: in production yes, in
            development no.
        scope: What it may do, such as accounts:read; repeat for several. All of its family when not given.
        allow: A network or address that its requests may come from, such as 203.0.113.0/24; repeat for several. From
            everywhere when not given.
        expires: When it stops: an ISO 8601 date-time with an offset, or a number of days such as 30d.
        reason: For the audit.
        save_as: Keep it under this name for `bankside call --key`.
        sign_with: The operator's key: a saved name or a subscription key.
    """
    if save_as:
        check_can_save(save_as)
    values: dict[str, Any] = {
        "family": family,
        "tenant": tenant,
        "tenant_name": tenant_name,
        "customer_id": str(customer) if customer else None,
        "scopes": scope,
        "allowed_networks": allow,
        "reads_per_minute": reads_per_minute,
        "writes_per_minute": writes_per_minute,
        "wires_per_minute": wires_per_minute,
        "require_idempotency_key": require_idempotency_key,
        "expires_at": expiry_of(expires),
        "reason": reason,
    }
    command = checked(
        k.CreateKey, {name: item for name, item in values.items() if item is not None}
    )
    try:
        made = ask(k.CREATE_KEY, command, key=sign_with)
    except NotFound:
        of = f" of {tenant}" if tenant else ""
        raise OperatorError(f"There is no customer {customer}{of}.") from None
    show_once(made, save_as, json=json)


@app.command(name="list")
def list_keys(*, tenant: str | None = None, sign_with: Sign = None, json: Flag = False) -> None:
    """Show the keys, without secrets.

    Such as `bankside keys list --tenant acme`.
    """
    found: list[k.KeyView] = []
    values: dict[str, Any] = {"limit": LISTED, "order": Order.OLDEST}
    if tenant is not None:
        values["tenant"] = tenant
    while True:
        page = ask(k.LIST_KEYS, checked(k.ListKeys, values), key=sign_with)
        found += page.items
        if page.next is None:
            break
        values["after"] = page.next
    if json:
        print_json([{name: item.model_dump()[name] for name in SHOWN} for item in found])
        return
    if not found:
        console().print("There is none.")
    for item in found:
        _show_line(item)


@app.command
def revoke(
    key: str,
    *,
    reason: str = "bankside keys revoke",
    yes: Flag = False,
    sign_with: Sign = None,
    json: Flag = False,
) -> int:
    """Stop a key, for good; it is refused within two seconds.

    Such as `bankside keys revoke KEY --reason "its program is gone"`.

    Args:
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = checked(k.RevokeKey, {"subscription_key": key, "reason": reason})
    refuse_to_ask_in_json(yes=yes, json=json)
    try:
        if not yes and not _agreed(key, sign_with):
            console().print("Nothing was done.")
            return 1
        ask(k.REVOKE_KEY, command, key=sign_with)
    except NotFound:
        raise OperatorError(f"There is no key {key}.") from None
    if json:
        print_json({"subscription_key": key, "revoked": True})
    else:
        console().print(f"{key} is revoked.")
    return 0


def _agreed(key: str, sign_with: str | None) -> bool:
    """Raises NotFound."""
    require_terminal()
    _show_line(ask(k.GET_KEY, k.GetKey(subscription_key=key), key=sign_with))
    return agrees("Revoke it, for good?")


@app.command(name="scopes")
def change_scopes(
    key: str,
    *,
    add: Annotated[list[str] | None, Parameter(negative="")] = None,
    remove: Annotated[list[str] | None, Parameter(negative="")] = None,
    reason: str = "bankside keys scopes",
    sign_with: Sign = None,
    json: Flag = False,
) -> None:
    """Change what a key may do, or show it; within two seconds it is so everywhere.

    Such as `bankside keys scopes KEY --add wires:read --remove wires:write`.

    Args:
        add: A scope, such as wires:write; repeat for several.
        remove: A scope that it is to lose; repeat for several.
    """
    changes = {"add": add or [], "remove": remove or []}
    command = checked(k.ChangeScopes, {"subscription_key": key, "reason": reason, **changes})
    try:
        changed = _of_active(
            key,
            lambda: (
                ask(k.CHANGE_SCOPES, command, key=sign_with)
                if add or remove
                else ask(k.GET_KEY, k.GetKey(subscription_key=key), key=sign_with)
            ),
        )
    except InvalidState:
        raise OperatorError(f"{key} would be left without a scope: revoke it instead.") from None
    scopes = sorted(changed.scopes)
    if json:
        print_json({"subscription_key": key, "scopes": scopes})
    else:
        console().print(f"{key}  {' '.join(scopes)}")


@app.command(name="allow")
def change_addresses(
    key: str,
    *,
    add: Annotated[list[str] | None, Parameter(negative="")] = None,
    remove: Annotated[list[str] | None, Parameter(negative="")] = None,
    anywhere: Flag = False,
    reason: str = "bankside keys allow",
    sign_with: Sign = None,
    json: Flag = False,
) -> None:
    """Change where requests of a key may come from, or show it; within two seconds it is so everywhere.

    Such as `bankside keys allow KEY --add 203.0.113.0/24`, or `bankside keys allow KEY --anywhere`.

    Args:
        add: A network or address, such as 203.0.113.0/24; repeat for several.
        remove: One that it is to lose; repeat for several.
        anywhere: Allow all addresses again.
    """
    if anywhere and (add or remove):
        raise OperatorError("--anywhere stands alone: without --add and --remove.")
    changes = {"add": add or [], "remove": remove or [], "anywhere": anywhere}
    command = checked(k.ChangeNetworks, {"subscription_key": key, "reason": reason, **changes})
    try:
        changed = _of_active(
            key,
            lambda: (
                ask(k.CHANGE_NETWORKS, command, key=sign_with)
                if add or remove or anywhere
                else ask(k.GET_KEY, k.GetKey(subscription_key=key), key=sign_with)
            ),
        )
    except InvalidState:
        raise OperatorError(
            f"{key} would be allowed from everywhere: say so with --anywhere."
        ) from None
    networks = sorted(changed.allowed_networks)
    if json:
        print_json({"subscription_key": key, "allowed_networks": networks})
    else:
        console().print(f"{key}  {' '.join(networks) or 'from everywhere'}")


@app.command
def rotate(
    key: str,
    *,
    overlap_hours: float = OVERLAP_HOURS,
    reason: str = "bankside keys rotate",
    save_as: Annotated[str | None, Parameter(name="--save")] = None,
    sign_with: Sign = None,
    json: Flag = False,
) -> None:
    """Give a key a new secret; the old one stays valid for the overlap.

    Such as `bankside keys rotate KEY --overlap-hours 48`. A key has two secrets at most: a second rotation within the
    overlap ends the first secret at once.

    Args:
        overlap_hours: How long the old secret still signs; 0 ends it at once.
        save_as: Keep the new secret under this name for `bankside call --key`. A copy that was saved before, under this
            or another name, has the old secret until it is saved anew.
    """
    values = {"overlap_hours": overlap(overlap_hours), "reason": reason}
    if save_as:
        check_can_save(save_as)
    command = checked(k.RotateKey, {"subscription_key": key, **values})
    with told_when_lost(key):
        rotated = _of_active(key, lambda: ask(k.ROTATE_KEY, command, key=sign_with))
    show_once(rotated, save_as, json=json)
    if not json:
        console().print(end_of_old_secret(overlap_hours))


def _of_active(key: str, asking: Callable[[], T]) -> T:
    """Raises OperatorError."""
    try:
        return asking()
    except NotFound:
        raise OperatorError(f"There is no active key {key}.") from None


def _show_line(item: k.KeyView) -> None:
    state = _state(item, datetime.now(UTC))
    customer = f" {item.customer_id}" if item.customer_id else ""
    used = f"used {minute(item.last_used_at)}" if item.last_used_at else "never used"
    expires = f"  expires {minute(item.expires_at)}" if item.expires_at else ""
    networks = f"  from {' '.join(item.allowed_networks)}" if item.allowed_networks else ""
    console().print(
        f"{item.subscription_key}  {item.tenant}  {item.family}{customer}  {state}  {used}{expires}{networks}"
        f"  {' '.join(item.scopes)}"
    )


def _state(key: k.KeyView, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "expired"
    return "active"


def expiry_of(text: str | None) -> datetime | None:
    """The time that a date-time names, or that is some days from now (`30d`); None for ever. Raises OperatorError."""
    if text is None:
        return None
    if days := re.fullmatch(r"([0-9]{1,5})d", text):
        return datetime.now(UTC) + timedelta(days=int(days[1]))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise OperatorError(
            "--expires takes an ISO 8601 date-time with an offset, such as 2027-01-31T00:00:00Z, or days, such as 30d."
        )
    return at
