"""The audit: rows that are chained by hash, and what of the commands of a service stands in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from libs.cli import audit as audit_command
from libs.contracts.errors import Invalid
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.operating.audit import ListAudit
from libs.contracts.operating.audit_chain import (
    BEGINNING,
    BrokenChain,
    Chain,
    Head,
    Row,
    chained,
)
from libs.contracts.operating.pages import Order
from libs.contracts.payments_operations import APPROVE_WIRE, SEND_WIRE
from libs.handling.auditing import audit_commands_for_ever
from libs.handling.operating.audit_rows import AuditRows
from libs.handling.operating.serving import operating_handlers
from libs.messaging.envelope import Reply, WireError, encode
from libs.persistence import (
    audit,
    audit_pages,
    audited_commands,
    forgetting,
    inbox_acceptance,
    inbox_housekeeping,
)
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit import Entry
from libs.persistence.audit_pages import Wanted
from libs.persistence.engine import Database
from libs.persistence.idle_locks import LOCKED_IDLE_SECONDS
from libs.persistence.inbox_acceptance import InternalCommand
from tests.integration.tables import define, execute, finish, rows
from tests.integration.test_inbox import ENDED, PRINCIPAL, leased
from tests.support.answered_operators import OPERATOR, AnsweredOperators
from tests.support.command_line import run_bankside
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.stack import Stack, environment_with
from tests.support.waiting import eventually

OK = encode(Reply(id="1", to="1", result=msgspec.Raw(b'{"data":null}')))
REFUSED = encode(Reply(id="1", to="1", error=WireError("insufficient_funds")))


def entry(number: int = 0) -> Entry:
    return Entry(actor="sub_a", action="payments.send_wire", outcome="ok", subject={"n": number})


async def every_row(database: Database, since: date | None = None) -> list[Row]:
    async with database.transaction() as connection:
        found, following = await audit_pages.page(
            connection, Wanted(since=since), after=None, order=Order.OLDEST, limit=1000
        )
    assert following is None
    return [*found]


async def verify(database: Database, since: date | None = None) -> Head | None:
    """As `bankside audit verify`; of a few rows."""
    rows = await every_row(database)
    earlier = [row for row in rows if since is not None and row.day < since]
    before = Head(earlier[-1].day, earlier[-1].number, earlier[-1].hash) if earlier else None
    chain = Chain(before, from_beginning=since is None)
    for row in rows[len(earlier) :]:
        chain.follow(row)
    return chain.head


def command_line(environment: Environment) -> AnsweredOperators:
    return AnsweredOperators(environment, {"onboarding": partial(operating_handlers, "onboarding")})


async def append(database: Database, *entries: Entry) -> Head | None:
    async with database.transaction() as connection:
        await audit.append(connection, entries)
    return await audit.head(database)


async def entries_of(database: Database) -> list[dict[str, Any]]:
    return [json.loads(row.entry) for row in await every_row(database)]


async def test_entries_of_many_transactions_at_once_are_one_chain(database: Database) -> None:
    assert await verify(database) is None

    await asyncio.gather(*(append(database, entry(n), entry(n)) for n in range(8)))

    head = await verify(database)
    assert head is not None
    assert head.number == 16
    assert sorted(found["n"] for found in await entries_of(database)) == sorted([*range(8)] * 2)


async def test_nothing_is_appended_without_what_it_tells(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as connection:
            await audit.append(connection, [entry()])
            raise ZeroDivisionError

    assert await verify(database) is None


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
        await verify(database)


async def test_rows_cut_off_at_the_end_are_missed_by_the_head_of_the_log(
    database: Database, fresh_environment: Environment
) -> None:
    head = await append(database, *(entry(n) for n in range(3)))
    bankside = command_line(fresh_environment).run
    asked = ("audit", "verify", "--service", "onboarding", "--head", str(head), "--json")
    before = await bankside(*asked)
    superuser = await asyncpg.connect(fresh_environment.database_urls["postgres"])
    await superuser.execute("DELETE FROM onboarding.audit WHERE number = 3")
    await superuser.close()

    after = await bankside(*asked)

    assert (before.status, json.loads(before.out)["audits"][0]["head"]) == (0, str(head))
    assert (after.status, json.loads(after.out)["audits"][0]["whole"]) == (1, False)


async def test_a_later_day_goes_on_from_the_one_before(
    database: Database, fresh_environment: Environment
) -> None:
    yesterday, first = datetime.now(UTC).date() - timedelta(days=1), entry(1).text()
    hash_ = chained(BEGINNING, yesterday, 1, first)
    superuser = await asyncpg.connect(fresh_environment.database_urls["postgres"])
    await superuser.execute("SET search_path = onboarding")
    await superuser.execute(
        "INSERT INTO audit VALUES ($1, 1, $2, $3, $4)", yesterday, first, BEGINNING, hash_
    )

    head = await append(database, entry(2), entry(3))

    assert head is not None
    assert (head.day, head.number) == (datetime.now(UTC).date(), 2)
    assert await verify(database) == await verify(database, head.day) == head
    await superuser.execute("DELETE FROM audit WHERE day = $1 AND number = 1", head.day)
    await superuser.close()
    with pytest.raises(BrokenChain):
        await verify(database, head.day)


def forged(day: date, number: int, previous: bytes, text: str = "{}") -> tuple[Any, ...]:
    return day, number, text, previous, chained(previous, day, number, text)


async def test_the_services_login_can_only_go_on_where_the_audit_ends(
    database: Database, fresh_environment: Environment
) -> None:
    head = await append(database, entry())
    assert head is not None
    login = await asyncpg.connect(fresh_environment.database_urls["onboarding"])
    hostile = {
        "a later day": forged(head.day + timedelta(days=9), 1, head.hash),
        "an earlier day": forged(head.day - timedelta(days=1), 1, BEGINNING),
        "a gap": forged(head.day, 3, head.hash),
        "another chain": forged(head.day, 2, BEGINNING),
        "a wrong hash": (*forged(head.day, 2, head.hash)[:4], bytes(32)),
    }
    for what, row in hostile.items():
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await login.execute("INSERT INTO audit VALUES ($1, $2, $3, $4, $5)", *row)
            pytest.fail(what)
    await login.close()

    assert await verify(database) == head


async def test_each_final_command_is_an_entry_once_and_is_purged_no_sooner(
    database: Database,
) -> None:
    done, refused, forgotten = [await leased(database) for _ in range(3)]
    await leased(database)  # not final
    await finish(database, done, OK)
    await finish(database, refused, REFUSED)
    async with database.transaction() as connection:
        await forgetting.begin(connection, forgotten, Invalid.code)
        await forgetting.forget(connection, forgotten)
    await execute(
        database,
        "UPDATE inbox SET finished_at = now() - interval '2 days' WHERE finished_at IS NOT NULL",
    )
    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 0

    found = await audited(database, 3, replicas=2)

    assert len(found) == len(await entries_of(database)) == 3
    assert {command_id: one["outcome"] for command_id, one in found.items()} == {
        str(done.command_id): "ok",
        str(refused.command_id): "insufficient_funds",
        str(forgotten.command_id): Invalid.code,
    }
    one = found[str(done.command_id)]
    assert (one["actor"], one["tenant"]) == (PRINCIPAL.subscription_key, PRINCIPAL.tenant)
    assert one["action"] == done.operation
    assert "key" not in one
    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 3
    assert len(await rows(database, "SELECT 1 FROM inbox")) == 1


async def test_the_digest_of_a_body_is_in_the_audit_only_where_the_body_has_no_sensitive_field(
    database: Database,
) -> None:
    operations = (UPDATE_PERSON.name, SEND_WIRE.name, "onboarding.of_a_later_release")
    for operation in operations:
        command = await leased(database)
        await execute(
            database,
            f"UPDATE inbox SET operation = '{operation}' WHERE command_id = '{command.command_id}'",
        )
        await finish(database, command, OK)

    found = await audited(database, len(operations))

    assert {one["action"]: one.get("body_digest") for one in found.values()} == {
        UPDATE_PERSON.name: None,
        SEND_WIRE.name: "hash",
        "onboarding.of_a_later_release": None,
    }


async def test_a_command_that_an_operator_caused_is_audited_under_the_operators_name(
    database: Database,
) -> None:
    command = InternalCommand(
        command_id=uuid4(),
        operation=APPROVE_WIRE.name,
        ordering_key=None,
        principal=msgspec.structs.replace(OPERATOR, browser="198.51.100.7"),
        body={},
    )
    async with database.transaction() as connection:
        await inbox_acceptance.enqueue(connection, command)
    await execute(database, "UPDATE inbox SET finished_at = now(), last_error = 'unavailable'")

    [entry] = (await audited(database, 1)).values()

    assert (entry["actor"], entry["key"]) == (OPERATOR.actor, OPERATOR.subscription_key)
    assert (entry["address"], entry["browser"]) == (OPERATOR.address, "198.51.100.7")


async def audited(
    database: Database, count: int, *, replicas: int = 1
) -> dict[str, dict[str, Any]]:
    """The entries of finished commands, by command id, once there are so many."""
    writing = [asyncio.create_task(audit_commands_for_ever(database)) for _ in range(replicas)]

    async def are_there() -> bool:
        return len(await entries_of(database)) >= count

    await eventually("the commands are in the audit", are_there)
    for replica in writing:
        replica.cancel()
    await asyncio.wait(writing)
    return {one["command_id"]: one for one in await entries_of(database)}


async def append_one(connection: AsyncConnection) -> None:
    await audit.append(connection, [entry()])


@pytest.mark.parametrize("lock", [append_one, audited_commands.take])
async def test_who_stands_still_keeps_the_audits_locks_for_seconds(
    database: Database, lock: Callable[[AsyncConnection], Awaitable[object]]
) -> None:
    """Operators' writes wait for the turn, and callers who begin a forgotten command anew for its row."""
    command = await leased(database)
    await finish(database, command, OK)

    with pytest.raises(ENDED):
        async with database.transaction() as standing:
            await lock(standing)
            async with asyncio.timeout((LOCKED_IDLE_SECONDS + 5) * pace()):
                await append(database, entry())
                await execute(database, "SELECT 1 FROM inbox FOR UPDATE")


async def test_the_command_line_verifies_and_exports_page_by_page(
    database: Database, fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(database, *(entry(n) for n in range(7)))
    operator = command_line(fresh_environment)
    monkeypatch.setattr(audit_command, "LARGEST_PAGE", 3)

    verified = await operator.command("audit", "verify", "--service", "onboarding")
    exported = await operator.command("audit", "export", "onboarding")
    today = datetime.now(UTC).date().isoformat()
    since = await operator.run("audit", "verify", "--service", "onboarding", "--since", today)
    await tamper(fresh_environment, TAMPERING["an entry is changed"])
    broken = await operator.run("audit", "verify", "--service", "onboarding")
    away = await operator.run("audit", "verify", "--service", "payments")

    assert verified["audits"][0]["head"] == str(await audit.head(database))
    assert [row["entry"]["n"] for row in exported["rows"]] == [*range(7)]
    assert operator.asked.count("gateway.list_audit") == 3 + 3 + 4 + 1 + 1
    assert (since.status, "is whole" in since.out) == (0, True)
    assert (broken.status, "2 was changed" in broken.out) == (1, True)
    assert away.status == 2


async def tamper(environment: Environment, statement: str) -> None:
    superuser = await asyncpg.connect(environment.database_urls["postgres"])
    await superuser.execute(f"SET search_path = onboarding; {statement}")
    await superuser.close()


async def test_a_page_has_the_rows_that_a_filter_finds_and_goes_on_where_it_looked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [Entry(actor='sub_"b\\c', action="keys.revoke", outcome="ok") for _ in range(4)]
    await append(database, entry(1), *others, entry(2), *others, entry(3))
    rows = AuditRows("onboarding", database)

    async def numbers(**wanted: Any) -> list[list[int]]:
        pages: list[list[int]] = []
        after: str | None = None
        while True:
            page: Any = (await rows.list(OPERATOR, ListAudit(**wanted, after=after), 0)).data
            pages.append([row.number for row in page.items])
            after = page.next
            if after is None:
                return pages

    assert await numbers(actor="sub_a", order=Order.OLDEST) == [[1, 6, 11]]
    assert await numbers(actor="sub_a", limit=2) == [[11, 6], [1]]
    all_others = [[10, 9, 8, 7, 5, 4, 3, 2]]
    assert await numbers(actor='sub_"b\\c', action="keys.revoke", limit=200) == all_others
    assert await numbers(text="SEND_wire", order=Order.OLDEST) == [[1, 6, 11]]
    for text_of_others in ('"B\\C', '"action":"KEYS.revoke"', 'sub_\\"b\\\\c'):
        assert await numbers(text=text_of_others, limit=200) == all_others
    assert await numbers(actor="sub_", action="keys") == [[]]
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert await numbers(since=tomorrow) == [[]]
    assert len((await numbers(until=tomorrow))[0]) == 11

    monkeypatch.setattr(audit_pages, "LOOKED_AT", 4)
    assert await numbers(actor="sub_a", order=Order.OLDEST) == [[1], [6], [11]]


@pytest.mark.parametrize(
    ("part", "instead", "says"),
    [
        ("@", "0@", "PostgreSQL refuses the login in BANKSIDE_GATEWAY_DATABASE_URL"),
        ("?", "-not-there?", "set BANKSIDE_GATEWAY_DATABASE_URL to a database that exists"),
    ],
)
async def test_a_login_and_a_database_that_are_wrong_are_told_in_a_sentence(
    part: str, instead: str, says: str, environment: Environment, tmp_path: Path
) -> None:
    settings = Stack(environment, tmp_path, ()).env
    url = f"{settings['BANKSIDE_GATEWAY_DATABASE_URL']}?sslmode=disable"

    done = await run_bankside(
        ("operators", "create", "first", "--role", "admin", "--at-database"),
        environment_with(
            {**settings, "BANKSIDE_GATEWAY_DATABASE_URL": url.replace(part, instead, 1)}
        ),
    )

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"bankside: The database of gateway cannot be used: {says}")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("ended", "status", "says"),
    [
        ("DEFERRED", 3, "The answer of the database is lost: first may have been made"),
        ("IMMEDIATE", 2, "The database of gateway cannot be used"),
    ],
    ids=["at the commit", "before the commit"],
)
async def test_an_operator_who_may_have_been_made_is_told_as_such(
    ended: str, status: int, says: str, fresh_environment: Environment, tmp_path: Path
) -> None:
    await define(
        fresh_environment,
        "gateway",
        "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER end_session AFTER INSERT ON operators "
        f"DEFERRABLE INITIALLY {ended} FOR EACH ROW EXECUTE FUNCTION end_session()",
    )

    try:
        done = await run_bankside(
            ("operators", "create", "first", "--role", "admin", "--at-database"),
            environment_with(Stack(fresh_environment, tmp_path, ()).env),
        )
    finally:
        await define(fresh_environment, "gateway", "DROP FUNCTION end_session CASCADE")

    assert (done.status, done.out) == (status, "")
    assert done.err.startswith(f"bankside: {says}")


async def test_a_database_of_an_earlier_release_is_told_in_a_sentence(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    """Where a command still works beside a service."""
    settings = Stack(fresh_environment, tmp_path, ()).env
    owner = await asyncpg.connect(fresh_environment.database_urls["gateway_owner"])
    await owner.execute("ALTER TABLE operators RENAME TO not_yet")
    try:
        done = await run_bankside(
            ("operators", "create", "first", "--role", "admin", "--at-database"),
            environment_with(settings),
        )
    finally:
        await owner.execute("ALTER TABLE not_yet RENAME TO operators")
        await owner.close()

    assert done.status == 2
    assert done.err.startswith("bankside: The database of gateway is not that of")
