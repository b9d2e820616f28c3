"""Operators of a test's own, made in the gateway's database as the first operator of a stack is."""

from __future__ import annotations

import secrets

from libs.contracts.principal import Role
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring
from services.gateway import new_keys, operator_repository
from tests.support.api import Key
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of


async def make_operator(database: Database, keyring: Keyring, role: str = Role.ADMIN) -> Key:
    """A key of a new operator, whose name is the key's `tenant`."""
    name = f"operator-{secrets.token_hex(4)}"
    async with database.transaction() as connection:
        await operator_repository.add_operator(connection, name, role)
        subscription_key, secret = await new_keys.add_key(connection, keyring, name)
    return Key(subscription_key, secret, name)


async def new_operator(environment: Environment, role: str = Role.ADMIN) -> Key:
    """The same, where no connection to the database is at hand."""
    database = open_database(environment.database_urls["gateway"], "tests", pool_size=1)
    try:
        return await make_operator(database, storage_of(environment.secrets, "gateway"), role)
    finally:
        await database.close()
