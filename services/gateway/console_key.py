"""The key of the console that is installed beside the gateway: both are given it as a setting."""

from __future__ import annotations

import structlog

from libs.persistence import audit
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit import Entry
from libs.persistence.engine import Database
from libs.persistence.sealing import CannotOpen, Keyring
from services.gateway import operator_repository as repository
from services.gateway.credentials import CONSOLE, secret_context

REGISTERED = "operators.register_console"
SETTINGS = "BANKSIDE_CONSOLE_OPERATOR_KEY and BANKSIDE_CONSOLE_OPERATOR_SECRET"
GATEWAY_SETTINGS = "BANKSIDE_GATEWAY_CONSOLE_KEY and BANKSIDE_GATEWAY_CONSOLE_SECRET"
NAME_IS_TAKEN = (
    f"the operator {CONSOLE} was revoked, which is for good, or has another role. Make a key with"
    f" `bankside operators create NAME --role {CONSOLE}`, and give it to the console as {SETTINGS}, and here as"
    f" {GATEWAY_SETTINGS}, or take these out"
)
KEY_IS_NOT_ITS_OWN = (
    f"the key was revoked, or belongs to another operator or tenant. Give {GATEWAY_SETTINGS}, and the console as"
    f" {SETTINGS}, a new key with a new secret"
)

KEY_CANNOT_BE_OPENED = (
    "the secret that was stored with the key cannot be opened by BANKSIDE_GATEWAY_STORAGE_KEYS. Put back the ring that"
    f" sealed it; if that is lost, give {GATEWAY_SETTINGS}, and the console as {SETTINGS}, a new key with a new secret"
)


async def register(
    database: Database, keyring: Keyring, subscription_key: str, secret: str
) -> None:
    """Have the operator `console` with this key, and end those that were registered before it.

    A key that was revoked stays so. What stands in the way is logged, with what to do.
    """
    async with database.transaction() as connection:
        refusal = await _register(connection, keyring, subscription_key, secret)
    if refusal is not None:
        structlog.get_logger("gateway").error("console_not_registered", because=refusal)


async def _register(
    connection: AsyncConnection, keyring: Keyring, subscription_key: str, secret: str
) -> str | None:
    """Why it cannot be; None when it is."""
    await repository.add_operator(connection, CONSOLE, CONSOLE)
    if await repository.lock_role(connection, CONSOLE) != CONSOLE:
        # Where an admin made a key of another console, the gateway may be given that: nothing is to be done.
        if await repository.is_active_key_of_a(connection, CONSOLE, subscription_key):
            return None
        return NAME_IS_TAKEN
    entries = []
    if not await repository.is_known_key(connection, subscription_key):
        sealed = keyring.seal(secret, secret_context(subscription_key))
        await repository.add_key(
            connection,
            repository.NewOperatorKey(
                subscription_key=subscription_key,
                operator=CONSOLE,
                secret=sealed,
                registered=True,
            ),
        )
        entries.append(_entry(REGISTERED, subscription_key))
    else:
        stored = await repository.secret_of_active_key(connection, CONSOLE, subscription_key)
        if stored is None:
            return KEY_IS_NOT_ITS_OWN
        # A row may be without the mark by which its successor ends it: gateways did not always write it.
        await repository.mark_registered(connection, CONSOLE, subscription_key)
        # Sealed anew it would be readable to this ring alone, which may be the wrong one.
        if not _opens(keyring, stored, subscription_key):
            return KEY_CANNOT_BE_OPENED
    ended = await repository.revoke_registered_before(connection, CONSOLE, subscription_key)
    entries += [_entry("operators.revoke_console_key", key) for key in ended]
    await audit.append(connection, entries)
    return None


def _opens(keyring: Keyring, sealed: str, subscription_key: str) -> bool:
    try:
        keyring.open(sealed, secret_context(subscription_key))
    except CannotOpen:
        return False
    return True


def _entry(action: str, subscription_key: str) -> Entry:
    return Entry(
        actor="gateway",
        action=action,
        outcome="ok",
        subject={"subscription_key": subscription_key},
    )
