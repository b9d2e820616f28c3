"""`bankside keys …`: subscription keys of partners and of their customers."""

from __future__ import annotations

import re
import secrets
import string
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from cyclopts import App, Parameter

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.output import console, print_json
from libs.cli.reseal import reseal
from libs.client.credentials import Credentials, check_can_save, save
from libs.client.errors import OperatorError
from libs.contracts.errors import BanksideError, NotFound
from libs.contracts.onboarding_operations import FIND_CUSTOMER
from libs.contracts.ownership import CustomerOwner, FindCustomer
from libs.contracts.principal import Family, Principal, Scope
from libs.messaging.broker import Broker
from libs.messaging.caller import Caller
from libs.persistence.engine import Database
from services.gateway import key_limits, repository
from services.gateway.credentials import secret_context
from services.gateway.settings import Settings

SERVICE = "gateway"
READS_PER_MINUTE = 6000
WRITES_PER_MINUTE = 600
WIRES_PER_MINUTE = 60
OVERLAP_HOURS = 24.0
ASK_SECONDS = 10.0

Json = Annotated[bool, Parameter(name="--json", negative="")]

app = App(
    name="keys",
    help="Subscription keys: create, list, revoke, rotate, scopes, allow; reseal what is stored.",
)
app.command(reseal)


@app.command
def create(
    *,
    family: Family,
    tenant: str | None = None,
    customer: UUID | None = None,
    tenant_name: str | None = None,
    reads_per_minute: int = READS_PER_MINUTE,
    writes_per_minute: int = WRITES_PER_MINUTE,
    wires_per_minute: int = WIRES_PER_MINUTE,
    scope: Annotated[list[str] | None, Parameter(negative="")] = None,
    allow: Annotated[list[str] | None, Parameter(negative="")] = None,
    expires: str | None = None,
    save_as: Annotated[str | None, Parameter(name="--save")] = None,
    json: Json = False,
) -> None:
    """Make a key and show its secret, once.

    Parameters
    ----------
    family
        Which routes it may use: partner (all of the tenant's customers) or customer (one of them).
    tenant
        The partner, made when it is new. For a customer's key it follows from the customer.
    customer
        The customer of a customer's key: the customer_id from onboarding.
    tenant_name
        The name of a new partner; its id when not given.
    scope
        What it may do, such as accounts:read; repeat for several. All of its family when not given.
    allow
        A network or address that its requests may come from, such as 203.0.113.0/24; repeat for several. From
        everywhere when not given.
    expires
        When it stops: an ISO 8601 date-time with an offset, or a number of days such as 30d.
    save_as
        Keep it under this name for `bankside call --key`.
    """
    if min(reads_per_minute, writes_per_minute, wires_per_minute) < 1:
        raise OperatorError("A rate is at least 1 a minute.")
    if save_as:
        check_can_save(save_as)
    scopes = key_limits.scopes_of(family, scope)
    networks = key_limits.networks_of(allow)
    expires_at = key_limits.expiry_of(expires)
    settings = Settings.load()

    async def work(database: Database) -> dict[str, Any]:
        owner = await _owner(settings, family, tenant, customer)
        subscription_key, secret = _new_subscription_key(), secrets.token_urlsafe(32)
        async with database.transaction() as connection:
            await repository.ensure_tenant(connection, owner, tenant_name or owner)
            await repository.add_credential(
                connection,
                repository.NewCredential(
                    subscription_key=subscription_key,
                    tenant=owner,
                    family=family,
                    customer_id=customer,
                    scopes=scopes,
                    allowed_networks=sorted(networks),
                    secret=settings.ring("storage_keys").seal(
                        secret, secret_context(subscription_key)
                    ),
                    reads_per_minute=reads_per_minute,
                    writes_per_minute=writes_per_minute,
                    wires_per_minute=wires_per_minute,
                    expires_at=expires_at,
                ),
            )
            await record(
                connection,
                "keys.create",
                subscription_key=subscription_key,
                tenant=owner,
                customer_id=str(customer) if customer else None,
                scopes=" ".join(sorted(scopes)),
                allowed_networks=" ".join(sorted(networks)),
                reads_per_minute=reads_per_minute,
                writes_per_minute=writes_per_minute,
                wires_per_minute=wires_per_minute,
                expires_at=expires_at.isoformat() if expires_at else None,
            )
        return _made(subscription_key, secret, owner, family.value)

    made = with_database(SERVICE, work)
    if save_as:
        save(save_as, Credentials(made["subscription_key"], made["secret"]))
    _show(made, save_as, json)


@app.command(name="list")
def list_keys(*, tenant: str | None = None, json: Json = False) -> None:
    """Show the keys, without secrets."""

    async def work(database: Database) -> list[repository.CredentialRow]:
        async with database.transaction() as connection:
            return await repository.list_credentials(connection, tenant)

    rows = with_database(SERVICE, work)
    if json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        state = _state(row, datetime.now(UTC))
        customer = f" {row.customer_id}" if row.customer_id else ""
        used = f"used {_minute(row.last_used_at)}" if row.last_used_at else "never used"
        expires = f"  expires {_minute(row.expires_at)}" if row.expires_at else ""
        networks = f"  from {' '.join(row.allowed_networks)}" if row.allowed_networks else ""
        console().print(
            f"{row.subscription_key}  {row.tenant}  {row.family}{customer}  {state}  {used}{expires}{networks}"
            f"  {' '.join(row.scopes)}"
        )


@app.command
def revoke(key: str, *, json: Json = False) -> None:
    """Stop a key; it is refused within two seconds."""

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            revoked = await repository.revoke(connection, key)
            if revoked:
                await record(connection, "keys.revoke", subscription_key=key)
            return revoked

    if not with_database(SERVICE, work):
        raise OperatorError(f"There is no key {key}.")
    if json:
        print_json({"subscription_key": key, "revoked": True})
    else:
        console().print(f"{key} is revoked.")


@app.command(name="scopes")
def change_scopes(
    key: str,
    *,
    add: Annotated[list[str] | None, Parameter(negative="")] = None,
    remove: Annotated[list[str] | None, Parameter(negative="")] = None,
    json: Json = False,
) -> None:
    """Change what a key may do, or show it; within two seconds it is so everywhere.

    Parameters
    ----------
    add
        A scope, such as wires:write; repeat for several.
    remove
        A scope that it is to lose; repeat for several.
    """

    async def work(database: Database) -> frozenset[Scope]:
        async with database.transaction() as connection:
            found = await repository.lock_scopes(connection, key)
            if found is None:
                raise OperatorError(f"There is no active key {key}.")
            family, scopes = found
            added = key_limits.scopes_of(family, add) if add else frozenset()
            removed = key_limits.scopes_of(family, remove) if remove else frozenset()
            changed = (scopes | added) - removed
            if not changed:
                raise OperatorError(f"{key} would be left without a scope: revoke it instead.")
            if changed != scopes:
                await repository.set_scopes(connection, key, changed)
                scopes_now = " ".join(sorted(changed))
                await record(connection, "keys.scopes", subscription_key=key, scopes=scopes_now)
            return changed

    scopes = sorted(with_database(SERVICE, work))
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
    anywhere: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Change where requests of a key may come from, or show it; within two seconds it is so everywhere.

    Parameters
    ----------
    add
        A network or address, such as 203.0.113.0/24; repeat for several.
    remove
        One that it is to lose; repeat for several.
    anywhere
        Allow all addresses again.
    """
    added, removed = key_limits.networks_of(add), key_limits.networks_of(remove)
    if anywhere and (added or removed):
        raise OperatorError("--anywhere stands alone: without --add and --remove.")

    async def work(database: Database) -> frozenset[str]:
        async with database.transaction() as connection:
            networks = await repository.lock_networks(connection, key)
            if networks is None:
                raise OperatorError(f"There is no active key {key}.")
            changed = frozenset() if anywhere else (networks | added) - removed
            if networks and not changed and not anywhere:
                raise OperatorError(
                    f"{key} would be allowed from everywhere: say so with --anywhere."
                )
            key_limits.require_few(changed)
            if changed != networks:
                await repository.set_networks(connection, key, changed)
                networks_now = " ".join(sorted(changed))
                await record(
                    connection, "keys.allow", subscription_key=key, allowed_networks=networks_now
                )
            return changed

    networks = sorted(with_database(SERVICE, work))
    if json:
        print_json({"subscription_key": key, "allowed_networks": networks})
    else:
        console().print(f"{key}  {' '.join(networks) or 'from everywhere'}")


@app.command
def rotate(
    key: str,
    *,
    overlap_hours: float = OVERLAP_HOURS,
    save_as: Annotated[str | None, Parameter(name="--save")] = None,
    json: Json = False,
) -> None:
    """Give a key a new secret; the old one stays valid for the overlap.

    Parameters
    ----------
    overlap_hours
        How long the old secret still signs; 0 ends it at once.
    """
    if not 0 <= overlap_hours <= 24 * 30:
        raise OperatorError("The overlap is 0 to 720 hours.")
    if save_as:
        check_can_save(save_as)
    settings = Settings.load()
    secret = secrets.token_urlsafe(32)

    async def work(database: Database) -> tuple[str, str] | None:
        sealed = settings.ring("storage_keys").seal(secret, secret_context(key))
        async with database.transaction() as connection:
            rotated = await repository.rotate(connection, key, sealed, overlap_hours)
            if rotated is not None:
                await record(
                    connection, "keys.rotate", subscription_key=key, overlap_hours=overlap_hours
                )
            return rotated

    rotated = with_database(SERVICE, work)
    if rotated is None:
        raise OperatorError(f"There is no active key {key}.")
    if save_as:
        save(save_as, Credentials(key, secret))
    _show(_made(key, secret, *rotated), save_as, json)


def _made(subscription_key: str, secret: str, tenant: str, family: str) -> dict[str, Any]:
    return {
        "subscription_key": subscription_key,
        "secret": secret,
        "tenant": tenant,
        "family": family,
    }


def _show(made: dict[str, Any], saved_as: str | None, json: bool) -> None:
    if json:
        print_json(made)
        return
    for name, value in made.items():
        console().print(f"{name:17} {value}")
    if saved_as:
        console().print(f"Saved for `bankside call --key {saved_as}`.")
    console().print("The secret is not shown again.")


def _new_subscription_key() -> str:
    alphabet = string.ascii_letters + string.digits
    return "sub_" + "".join(secrets.choice(alphabet) for _ in range(24))


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%MZ}"


def _state(row: repository.CredentialRow, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= now:
        return "expired"
    return "active"


async def _owner(
    settings: Settings, family: Family, tenant: str | None, customer: UUID | None
) -> str:
    """The tenant that the key is for."""
    if family is Family.PARTNER:
        if customer is not None:
            raise OperatorError("A partner's key is not for one customer: leave --customer out.")
        if tenant is None or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", tenant):
            raise OperatorError(
                "Name the partner with --tenant: lower-case letters, digits, '-' and '_'."
            )
        return tenant
    if customer is None:
        raise OperatorError("Name the customer with --customer: the customer_id from onboarding.")
    found = await _find_customer(settings, customer)
    if tenant is not None and tenant != found.tenant:
        raise OperatorError(f"There is no customer {customer} of {tenant}.")
    return found.tenant


async def _find_customer(settings: Settings, customer: UUID) -> CustomerOwner:
    """Ask onboarding, which owns customers."""
    broker = Broker(settings.amqp_url.get_secret_value(), "operator", ca_file=settings.amqp_ca_file)
    caller = Caller(settings.message_sealer())
    broker.add(caller)
    operator = Principal(
        tenant="", tenant_name="", family=Family.PARTNER, subscription_key="operator"
    )
    async with broker.open():
        await broker.start(wait_seconds=ASK_SECONDS)
        try:
            payload = await caller.query(
                FIND_CUSTOMER,
                operator,
                FindCustomer(customer_id=str(customer)),
                time.time() + ASK_SECONDS,
            )
        except NotFound:
            raise OperatorError(f"There is no customer {customer}.") from None
        except BanksideError as error:
            raise OperatorError(
                f"Onboarding could not be asked about the customer ({error.code}): is the stack running?"
            ) from None
    return CustomerOwner.model_validate(payload["data"], extra="ignore")
