"""The key of the console that is installed beside the gateway: both are given it as a setting."""

from __future__ import annotations

from libs.persistence import audit
from libs.persistence.audit import Entry
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from services.gateway import operator_repository as repository
from services.gateway.credentials import CONSOLE, secret_context


async def register(
    database: Database, keyring: Keyring, subscription_key: str, secret: str
) -> None:
    """Have the operator `console` with this key, unless there is one that has it, or had it: a revoked key stays so."""
    async with database.transaction() as connection:
        await repository.add_operator(connection, CONSOLE, CONSOLE)
        if await repository.lock_role(connection, CONSOLE) != CONSOLE:
            return
        if await repository.is_known_key(connection, subscription_key):
            return
        sealed = keyring.seal(secret, secret_context(subscription_key))
        await repository.add_key(
            connection,
            repository.NewOperatorKey(
                subscription_key=subscription_key, operator=CONSOLE, secret=sealed
            ),
        )
        entry = Entry(
            actor="gateway",
            action="operators.register_console",
            outcome="ok",
            subject={"subscription_key": subscription_key},
        )
        await audit.append(connection, [entry])
