"""One key of an operator is rotated or ended by itself, and an admin with a key stays."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from libs.contracts.errors import BanksideError, InvalidState, NotFound
from libs.contracts.operating import operators as o
from libs.contracts.principal import Family, Principal, Role
from libs.persistence.engine import Database, open_database
from services.gateway import new_keys
from services.gateway.operating.operators import Operators
from services.gateway.passwords import Passwords
from tests.integration.gateway.desk import Desk, until, verdict
from tests.support.api import Key
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of
from tests.support.operators import make_operator

OPERATORS = "/operator/operators"
SOMEONE = Principal("", "", Family.OPERATOR, "sub_test", operator="someone")


def of(key: Key, action: str) -> str:
    return f"{OPERATORS}/{key.tenant}/keys/{key.subscription_key}/{action}"


async def test_a_key_is_rotated_and_then_ended_while_the_operator_stays(desk: Desk) -> None:
    admin, other = await desk.operator(), await desk.operator(Role.VIEWER)
    assert other.key is not None

    rotated = await admin.post(of(other.key, "rotate"), {"overlap_hours": 0, "reason": "leaked"})
    renewed = desk.at_operators(Key(other.key.subscription_key, rotated.data["secret"]))
    read = await until(lambda: answers(renewed, 200))
    before = await until(lambda: answers(other, 401))
    revoked = await admin.post(of(other.key, "revoke"), {"reason": "over"})
    again = await admin.post(of(other.key, "revoke"), {"reason": "over already"})
    ended = await until(lambda: answers(renewed, 401))

    assert (rotated.data["name"], read) == (other.key.tenant, True)
    assert before
    assert ended
    # Its last use may be written in between.
    assert {**revoked.data, "last_used_at": None} == {**again.data, "last_used_at": None}
    assert (revoked.data["subscription_keys"], revoked.data["revoked_at"]) == ([], None)
    rows = await desk.execute("SELECT entry FROM audit ORDER BY day, number")
    entries = [json.loads(row.entry) for row in rows if other.key.subscription_key in row.entry]
    assert [
        (entry["action"], entry["operator"], entry["reason"])
        for entry in entries
        if entry["actor"].startswith("operator:") and entry["outcome"] == "ok"
    ] == [
        ("operators.rotate_key", other.key.tenant, "leaked"),
        ("operators.revoke_key", other.key.tenant, "over"),
        ("operators.revoke_key", other.key.tenant, "over already"),
    ]


async def answers(api: Any, status: int) -> bool:
    return bool((await api.get(OPERATORS)).status == status)


async def test_a_key_of_another_operator_or_of_none_is_not_found(desk: Desk) -> None:
    admin, other = await desk.operator(), await desk.operator(Role.VIEWER)
    assert admin.key is not None
    assert other.key is not None
    mixed = Key(other.key.subscription_key, "", admin.key.tenant)
    tenants = Key((await desk.key()).subscription_key, "", admin.key.tenant)

    for key in (mixed, tenants, Key("sub_none", "", admin.key.tenant)):
        for action in ("rotate", "revoke"):
            answer = await admin.post(of(key, action), {"reason": "x"})
            assert verdict(answer) == (404, "not_found")
    assert (await other.get(OPERATORS)).status == 200


@pytest.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    opened = open_database(fresh_environment.database_urls["gateway"], "tests", pool_size=4)
    yield opened
    await opened.close()


async def call(operators: Operators, operation: str, command: Any) -> BanksideError | None:
    """What it is refused with."""
    try:
        await operators.by_operation()[operation](SOMEONE, command, math.inf)
    except BanksideError as error:
        return error
    return None


def revoking(key: Key) -> o.RevokeOperatorKey:
    return o.RevokeOperatorKey(name=key.tenant, subscription_key=key.subscription_key, reason="x")


async def test_the_last_key_of_the_last_admin_who_has_one_is_not_revoked(
    database: Database, fresh_environment: Environment
) -> None:
    keyring = storage_of(fresh_environment.secrets, "gateway")
    operators = Operators(database, keyring, Passwords())
    first, second = [await make_operator(database, keyring) for _ in range(2)]
    async with database.transaction() as connection:
        further = Key(*await new_keys.add_key(connection, keyring, first.tenant), first.tenant)

    refused = [
        await call(operators, o.REVOKE_OPERATOR_KEY.name, revoking(key))
        for key in (second, further, first)
    ]
    as_a_whole = await call(
        operators, o.REVOKE_OPERATOR.name, o.RevokeOperator(name=first.tenant, reason="x")
    )
    demoted = await call(
        operators,
        o.CHANGE_ROLE.name,
        o.ChangeRole(name=first.tenant, role="viewer", reason="x"),
    )
    ended = await call(
        operators,
        o.ROTATE_OPERATOR_KEY.name,
        o.RotateOperatorKey(
            name=second.tenant, subscription_key=second.subscription_key, reason="x"
        ),
    )

    assert refused[:2] == [None, None]
    assert [type(error) for error in (refused[2], as_a_whole, demoted)] == [InvalidState] * 3
    assert type(ended) is NotFound


async def test_of_two_last_keys_that_are_revoked_at_the_same_time_one_stays(
    database: Database, fresh_environment: Environment
) -> None:
    keyring = storage_of(fresh_environment.secrets, "gateway")
    operators = Operators(database, keyring, Passwords())
    keys = [await make_operator(database, keyring) for _ in range(2)]

    refused = await asyncio.gather(
        *(call(operators, o.REVOKE_OPERATOR_KEY.name, revoking(key)) for key in keys)
    )

    assert [type(error) for error in refused if error is not None] == [InvalidState]
