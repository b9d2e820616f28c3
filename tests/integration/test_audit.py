"""The audit: rows that are chained by hash, and what of the commands of a service stands in it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest

from libs.handling.auditing import audit_commands_for_ever
from libs.messaging.envelope import Reply, WireError, encode
from libs.persistence import audit, forgetting, inbox_housekeeping
from libs.persistence.audit import BrokenChain, Entry, Head
from libs.persistence.engine import Database
from tests.integration.tables import execute, finish, rows
from tests.integration.test_inbox import PRINCIPAL, leased
from tests.support.command_line import run_bankside
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually

OK = encode(Reply(id="1", to="1", result=msgspec.Raw(b'{"data":null}')))
REFUSED = encode(Reply(id="1", to="1", error=WireError("insufficient_funds")))


def entry(number: int = 0) -> Entry:
    return Entry(actor="sub_a", action="payments.send_wire", outcome="ok", subject={"n": number})


async def append(database: Database, *entries: Entry) -> Head | None:
    async with database.transaction() as connection:
        await audit.append(connection, entries)
    return await audit.head(database)


async def entries_of(database: Database) -> list[dict[str, Any]]:
    return [json.loads(row.entry) async for row in audit.read(database)]


async def test_entries_of_many_transactions_at_once_are_one_chain(database: Database) -> None:
    assert await audit.verify(database) is None

    await asyncio.gather(*(append(database, entry(n), entry(n)) for n in range(8)))

    head = await audit.verify(database)
    assert head is not None
    assert head.number == 16
    assert sorted(found["n"] for found in await entries_of(database)) == sorted([*range(8)] * 2)


async def test_nothing_is_appended_without_what_it_tells(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as connection:
            await audit.append(connection, [entry()])
            raise ZeroDivisionError

    assert await audit.verify(database) is None


TAMPERING = {
    "an entry is changed": "UPDATE audit SET entry = replace(entry, 'ok', 'no') WHERE number = 2",
    "a row is removed": "DELETE FROM audit WHERE number = 2",
    "the first row is removed": "DELETE FROM audit WHERE number = 1",
    "rows change places": """
        UPDATE audit a SET entry = b.entry FROM audit b
        WHERE a.number IN (1, 2) AND b.number IN (1, 2) AND a.number <> b.number""",
    "a hash is made anew": """
        UPDATE audit SET entry = '{}', hash = sha256(previous || convert_to(day || ':' || number || ':{}', 'UTF8'))
        WHERE number = 2""",
    "a day is changed": "UPDATE audit SET day = day - 1 WHERE number = 1",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
async def test_what_the_superuser_changed_is_found(
    database: Database, fresh_environment: Environment, statement: str
) -> None:
    await append(database, *(entry(n) for n in range(3)))
    connection = await asyncpg.connect(fresh_environment.database_urls["postgres"])
    await connection.execute(f"SET search_path = onboarding; {statement}")
    await connection.close()

    with pytest.raises(BrokenChain):
        await audit.verify(database)


async def test_rows_cut_off_at_the_end_are_missed_by_the_head_of_the_log(
    database: Database, fresh_environment: Environment
) -> None:
    head = await append(database, *(entry(n) for n in range(3)))
    environment = {
        "BANKSIDE_ONBOARDING_DATABASE_URL": fresh_environment.database_urls["onboarding"]
    }
    asked = ("audit", "verify", "--service", "onboarding", "--head", str(head), "--json")
    before = await run_bankside(asked, environment)
    superuser = await asyncpg.connect(fresh_environment.database_urls["postgres"])
    await superuser.execute("DELETE FROM onboarding.audit WHERE number = 3")
    await superuser.close()

    after = await run_bankside(asked, environment)

    assert (before.status, json.loads(before.out)["audits"][0]["head"]) == (0, str(head))
    assert (after.status, json.loads(after.out)["audits"][0]["whole"]) == (1, False)


async def test_a_later_day_goes_on_from_the_one_before(
    database: Database, fresh_environment: Environment
) -> None:
    yesterday, first = datetime.now(UTC).date() - timedelta(days=1), entry(1).text()
    hash_ = audit.chained(audit.BEGINNING, yesterday, 1, first)
    superuser = await asyncpg.connect(fresh_environment.database_urls["postgres"])
    await superuser.execute("SET search_path = onboarding")
    await superuser.execute(
        "INSERT INTO audit VALUES ($1, 1, $2, $3, $4)", yesterday, first, audit.BEGINNING, hash_
    )

    head = await append(database, entry(2), entry(3))

    assert head is not None
    assert (head.day, head.number) == (datetime.now(UTC).date(), 2)
    assert await audit.verify(database) == await audit.verify(database, head.day) == head
    await superuser.execute("DELETE FROM audit WHERE day = $1 AND number = 1", head.day)
    await superuser.close()
    with pytest.raises(BrokenChain):
        await audit.verify(database, head.day)


def forged(day: date, number: int, previous: bytes, text: str = "{}") -> tuple[Any, ...]:
    return day, number, text, previous, audit.chained(previous, day, number, text)


async def test_the_services_login_can_only_go_on_where_the_audit_ends(
    database: Database, fresh_environment: Environment
) -> None:
    head = await append(database, entry())
    assert head is not None
    login = await asyncpg.connect(fresh_environment.database_urls["onboarding"])
    hostile = {
        "a later day": forged(head.day + timedelta(days=9), 1, head.hash),
        "an earlier day": forged(head.day - timedelta(days=1), 1, audit.BEGINNING),
        "a gap": forged(head.day, 3, head.hash),
        "another chain": forged(head.day, 2, audit.BEGINNING),
        "a wrong hash": (*forged(head.day, 2, head.hash)[:4], bytes(32)),
    }
    for what, row in hostile.items():
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await login.execute("INSERT INTO audit VALUES ($1, $2, $3, $4, $5)", *row)
            pytest.fail(what)
    await login.close()

    assert await audit.verify(database) == head


async def test_each_final_command_is_an_entry_once_and_is_purged_no_sooner(
    database: Database,
) -> None:
    done, refused, taken_back = [await leased(database) for _ in range(3)]
    await leased(database)  # not final
    await finish(database, done, OK)
    await finish(database, refused, REFUSED)
    async with database.transaction() as connection:
        await forgetting.begin(connection, taken_back)
        await forgetting.forget(connection, taken_back)
    await execute(
        database,
        "UPDATE inbox SET finished_at = now() - interval '2 days' WHERE finished_at IS NOT NULL",
    )
    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 0

    replicas = [asyncio.create_task(audit_commands_for_ever(database)) for _ in range(2)]

    async def are_there() -> bool:
        return len(await entries_of(database)) >= 3

    await eventually("the commands are in the audit", are_there)
    for replica in replicas:
        replica.cancel()
    await asyncio.wait(replicas)
    found = {one["command_id"]: one for one in await entries_of(database)}
    assert len(found) == len(await entries_of(database)) == 3
    assert {command_id: one["outcome"] for command_id, one in found.items()} == {
        str(done.command_id): "ok",
        str(refused.command_id): "insufficient_funds",
        str(taken_back.command_id): "unavailable",
    }
    one = found[str(done.command_id)]
    assert (one["actor"], one["tenant"]) == (PRINCIPAL.subscription_key, PRINCIPAL.tenant)
    assert (one["action"], one["body_digest"]) == (done.operation, "hash")
    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 3
    assert len(await rows(database, "SELECT 1 FROM inbox")) == 1


async def test_a_database_of_an_earlier_release_is_told_in_a_sentence(
    fresh_environment: Environment,
) -> None:
    owner = await asyncpg.connect(fresh_environment.database_urls["reconciliation_owner"])
    await owner.execute("ALTER TABLE audit RENAME TO not_yet")
    url = fresh_environment.database_urls["reconciliation"]
    try:
        done = await run_bankside(
            ("audit", "verify", "--service", "reconciliation"),
            {"BANKSIDE_RECONCILIATION_DATABASE_URL": url},
        )
    finally:
        await owner.execute("ALTER TABLE not_yet RENAME TO audit")
        await owner.close()

    assert done.status == 2
    assert done.err.startswith("bankside: The database of reconciliation is not that of")
