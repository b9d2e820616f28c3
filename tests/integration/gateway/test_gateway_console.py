"""The console beside the gateway has a key that both are given."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.contracts.principal import Role
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring
from services.gateway import new_keys
from services.gateway import operator_repository as repository
from services.gateway.console_key import register
from services.gateway.credentials import CONSOLE, secret_context
from tests.integration.gateway.desk import Desk, verdict
from tests.support.api import Key
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of

FIRST, SECOND, THIRD = (f"sub_{letter * 24}" for letter in "abc")
SECRET = "secret-of-a-console-in-a-test"


@pytest.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    opened = open_database(fresh_environment.database_urls["gateway"], "tests", pool_size=1)
    yield opened
    await opened.close()


async def registered(database: Database, environment: Environment, key: str) -> list[str]:
    """What is logged of it."""
    keyring = storage_of(environment.secrets, "gateway")
    with capture_logs() as logs:
        await register(database, keyring, key, SECRET)
    return [
        f"{line['log_level']} {line['event']} {line['because']}"
        for line in logs
        if "because" in line
    ]


async def active_keys(database: Database) -> list[str]:
    async with database.transaction() as connection:
        found = await repository.find_operator(connection, CONSOLE)
    assert found is not None
    return found.subscription_keys


async def audited(database: Database) -> list[tuple[Any, ...]]:
    async with database.transaction() as connection:
        rows = await connection.execute(text("SELECT entry FROM audit ORDER BY day, number"))
        entries = [json.loads(row.entry) for row in rows]
    return [(entry["action"], entry["subscription_key"]) for entry in entries]


async def test_the_gateway_registers_the_key_of_its_console(desk: Desk) -> None:
    secrets = desk.environment.secrets
    admin = await desk.operator(Role.ADMIN)

    listed = (await admin.get("/operator/operators?limit=200")).data["items"]
    console = Key(secrets.console_key, secrets.console_secret, "console")
    answer = await desk.at_operators(console).get("/operator/operators")

    [found] = [item for item in listed if item["name"] == "console"]
    assert (found["role"], found["subscription_keys"]) == ("console", [secrets.console_key])
    assert verdict(answer) != (401, "unknown_subscription_key")
    assert answer.status == 403


async def test_another_key_ends_those_that_were_registered_before_and_no_others(
    database: Database, fresh_environment: Environment
) -> None:
    await registered(database, fresh_environment, FIRST)
    async with database.transaction() as connection:
        keyring = storage_of(fresh_environment.secrets, "gateway")
        by_hand, _ = await new_keys.add_key(connection, keyring, CONSOLE)

    logged = [await registered(database, fresh_environment, key) for key in (SECOND, SECOND, THIRD)]

    assert logged == [[], [], []]
    assert await active_keys(database) == [by_hand, THIRD]
    assert await audited(database) == [
        ("operators.register_console", FIRST),
        ("operators.register_console", SECOND),
        ("operators.revoke_console_key", FIRST),
        ("operators.register_console", THIRD),
        ("operators.revoke_console_key", SECOND),
    ]


async def test_another_key_ends_one_that_a_gateway_of_the_release_before_registered(
    database: Database, fresh_environment: Environment
) -> None:
    await registered(database, fresh_environment, FIRST)
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE credentials SET registered = DEFAULT"))

    logged = [await registered(database, fresh_environment, key) for key in (FIRST, SECOND)]

    assert logged == [[], []]
    assert await active_keys(database) == [SECOND]


async def test_a_key_that_was_replaced_ends_none_and_says_what_to_do(
    database: Database, fresh_environment: Environment
) -> None:
    for key in (FIRST, SECOND):
        await registered(database, fresh_environment, key)

    [logged] = await registered(database, fresh_environment, FIRST)

    assert logged.startswith("error console_not_registered the key was revoked")
    assert "BANKSIDE_CONSOLE_OPERATOR_KEY" in logged
    assert await active_keys(database) == [SECOND]


async def test_a_key_whose_stored_secret_no_ring_opens_stays_as_it_is_and_says_what_to_do(
    database: Database, fresh_environment: Environment
) -> None:
    async with database.transaction() as connection:
        await repository.add_operator(connection, CONSOLE, CONSOLE)
        lost = Keyring(f"lost:{base64.b64encode(bytes(32)).decode()}")
        sealed = lost.seal(SECRET, secret_context(FIRST))
        await repository.add_key(
            connection,
            repository.NewOperatorKey(
                subscription_key=FIRST, operator=CONSOLE, secret=sealed, registered=True
            ),
        )

    [logged] = await registered(database, fresh_environment, FIRST)
    with_a_new_pair = await registered(database, fresh_environment, SECOND)

    assert "cannot be opened by BANKSIDE_GATEWAY_STORAGE_KEYS" in logged
    assert with_a_new_pair == []
    assert await active_keys(database) == [SECOND]


async def test_a_console_that_was_revoked_stays_so_and_the_log_says_what_to_do(
    database: Database, fresh_environment: Environment
) -> None:
    await registered(database, fresh_environment, FIRST)
    async with database.transaction() as connection:
        await repository.revoke(connection, CONSOLE)

    [logged] = await registered(database, fresh_environment, SECOND)

    assert logged.startswith("error console_not_registered the operator console was revoked")
    assert "`bankside operators create NAME --role console`" in logged
    assert await active_keys(database) == []


async def test_a_console_of_another_name_is_left_as_an_admin_made_it(
    database: Database, fresh_environment: Environment
) -> None:
    await registered(database, fresh_environment, FIRST)
    keyring = storage_of(fresh_environment.secrets, "gateway")
    async with database.transaction() as connection:
        await repository.revoke(connection, CONSOLE)
        await repository.add_operator(connection, "console-2", CONSOLE)
        by_hand, _ = await new_keys.add_key(connection, keyring, "console-2")

    assert await registered(database, fresh_environment, by_hand) == []
