"""Of several processes one leads; one that vanished or froze is followed, and cannot write any more."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from sqlalchemy import text

from libs.contracts.events import Event
from libs.persistence import cursor, engine, leadership, relaying
from libs.persistence.engine import Database, open_database
from libs.persistence.leadership import LeadershipLost, Term, fence
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.gateway.desk import until
from tests.integration.tables import rows
from tests.integration.test_outbox import an_event, is_empty, record
from tests.support.infrastructure import Environment
from tests.support.pace import pace

FOLLOWED_SECONDS = 15.0
"""A lease and an election take 6 s; the rest is for a busy machine."""
STUCK_SECONDS = 6.0
AT_ONCE_SECONDS = 2.5
"""An election and a pause of a busy machine, but no lease."""
WAITS_FOR_A_LOCK = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND cardinality(pg_blocking_pids(pid)) > 0"
)


@dataclass
class Candidate:
    """Leads when it can, until it is told to end or loses its lease."""

    database: Database
    name: str = "test"
    terms: list[Term] = field(default_factory=list)
    leading: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        try:
            async with leadership.leadership(self.database, self.name) as term:
                self.terms.append(term)
                self.leading.set()
                await self.stop.wait()
        finally:
            self.ended.set()


@asynccontextmanager
async def running(candidate: Candidate) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(candidate.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def within(seconds: float, event: asyncio.Event) -> None:
    async with asyncio.timeout(seconds * pace()):
        await event.wait()


@asynccontextmanager
async def behind_a_wire(environment: Environment) -> AsyncIterator[tuple[Wire, Database]]:
    async with wire_to(environment.database_urls["onboarding"]) as wire:
        opened = open_database(wire.url, "behind-a-wire")
        yield wire, opened
        wire.cut()
        await opened.close()


async def end_lease(database: Database, name: str) -> None:
    """As if its time had passed, while its holder does not know."""
    async with database.transaction() as connection:
        await connection.execute(
            text("UPDATE leader_lease SET lease_until = '-infinity' WHERE name = :name"),
            {"name": name},
        )


async def test_a_leader_that_vanished_without_a_word_is_followed(
    fresh_environment: Environment, database: Database
) -> None:
    async with behind_a_wire(fresh_environment) as (wire, distant):
        first, second = Candidate(distant), Candidate(database)
        async with running(first):
            await within(5, first.leading)
            async with running(second):
                wire.stall()

                await within(FOLLOWED_SECONDS, second.leading)
                await within(FOLLOWED_SECONDS, first.ended)

    assert second.terms[0].number == first.terms[0].number + 1


async def test_a_leader_that_vanished_in_the_middle_of_a_fenced_transaction_is_followed(
    fresh_environment: Environment, database: Database
) -> None:
    async with behind_a_wire(fresh_environment) as (wire, distant):
        fenced = asyncio.Event()

        async def lead() -> None:
            async with (
                leadership.leadership(distant, "test") as term,
                distant.transaction() as connection,
            ):
                await fence(connection, term)
                fenced.set()
                await asyncio.Event().wait()

        first, second = asyncio.create_task(lead()), Candidate(database)
        await within(5, fenced)
        wire.stall()

        async with running(second):
            await within(FOLLOWED_SECONDS, second.leading)

        first.cancel()
        await asyncio.wait({first})


async def test_a_lease_from_before_the_clock_was_set_back_is_taken_and_its_writes_are_refused(
    database: Database,
) -> None:
    gone = Term("test", 7, uuid4(), asyncio.timeout(None))
    async with database.driver() as connection:
        await connection.execute(
            "INSERT INTO leader_lease (name, term, holder, lease_until)"
            " VALUES ($1, $2, $3, clock_timestamp() + interval '1 hour')",
            *gone.token,
        )
    second = Candidate(database)

    async with running(second):
        await within(AT_ONCE_SECONDS, second.leading)

        assert second.terms[0].number == gone.number + 1
        with pytest.raises(LeadershipLost):
            async with database.transaction() as transaction:
                await fence(transaction, gone)


async def test_a_leader_that_ends_is_followed_at_once(database: Database) -> None:
    first, second = Candidate(database), Candidate(database)
    async with running(first) as task:
        await within(5, first.leading)
        async with running(second):
            first.stop.set()
            await asyncio.wait({task})

            await within(AT_ONCE_SECONDS, second.leading)

    assert second.terms[0].number == first.terms[0].number + 1


async def test_a_leader_goes_on_leading_while_its_writes_take_longer_than_its_lease(
    database: Database,
) -> None:
    second = Candidate(database)
    async with leadership.leadership(database, "test") as term, running(second):
        async with database.transaction() as connection:
            await fence(connection, term)
            for _ in range(int(leadership.LEASE_SECONDS) + 2):
                await connection.execute(text("SELECT pg_sleep(1)"))

        assert not second.leading.is_set()


@pytest.fixture
def in_ignorance(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process renews its lease within the test, or notices that its term is over."""
    monkeypatch.setattr(leadership, "LEASE_SECONDS", 600.0)
    monkeypatch.setattr(leadership, "RENEWAL_SECONDS", 600.0)
    monkeypatch.setattr(leadership, "STATEMENT_SECONDS", 600.0)


@pytest.mark.usefixtures("in_ignorance")
async def test_what_a_leader_writes_after_its_term_is_refused(database: Database) -> None:
    async with leadership.leadership(database, "test") as term:
        await end_lease(database, "test")
        async with leadership.leadership(database, "test") as later:
            with pytest.raises(LeadershipLost):
                async with database.transaction() as connection:
                    await fence(connection, term)
                    await cursor.move(connection, "core", expected=0, to=1)
            async with database.transaction() as connection:
                await fence(connection, later)
                await cursor.move(connection, "core", expected=0, to=2)

    async with database.transaction() as connection:
        assert await cursor.read(connection, "core") == 2


@pytest.mark.usefixtures("in_ignorance")
async def test_a_term_that_a_restored_database_issues_again_is_not_taken_for_its_own(
    database: Database,
) -> None:
    async with leadership.leadership(database, "test") as term:
        await end_lease(database, "test")
        async with database.transaction() as connection:
            await connection.execute(text("UPDATE leader_lease SET term = term - 1"))
        async with leadership.leadership(database, "test") as later:
            assert later.number == term.number
            with pytest.raises(LeadershipLost):
                async with database.transaction() as connection:
                    await fence(connection, term)


@pytest.mark.usefixtures("in_ignorance")
async def test_a_lease_is_not_taken_in_the_middle_of_a_fenced_transaction(
    database: Database,
) -> None:
    second = Candidate(database)
    async with AsyncExitStack() as opened, leadership.leadership(database, "test") as term:
        async with database.transaction() as connection:
            await fence(connection, term)
            # The test sends nothing by this connection meanwhile, and may take long on a busy machine.
            await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '30s'"))
            await end_lease(database, "test")  # as a renewal, it does not wait for the fence
            await opened.enter_async_context(running(second))
            await until(lambda: rows(database, WAITS_FOR_A_LOCK))
            assert not second.leading.is_set()
            await cursor.move(connection, "core", expected=0, to=1)
        await within(5, second.leading)

    assert second.terms[0].number == term.number + 1


async def test_the_body_ends_when_its_lease_is_not_renewed(
    fresh_environment: Environment, database: Database
) -> None:
    async with behind_a_wire(fresh_environment) as (wire, distant):
        candidate = Candidate(distant)
        async with running(candidate) as task:
            await within(5, candidate.leading)
            wire.stall()

            await within(FOLLOWED_SECONDS, candidate.ended)
            await asyncio.wait({task}, timeout=FOLLOWED_SECONDS * pace())

            assert isinstance(task.exception(), LeadershipLost)


@pytest.mark.usefixtures("in_ignorance")
async def test_a_relay_that_wakes_up_after_its_term_deletes_nothing(database: Database) -> None:
    published = asyncio.Event()
    go_on = asyncio.Event()

    async def publish(_: Sequence[Event]) -> Collection[str]:
        published.set()
        await go_on.wait()
        return ()

    await record(database, an_event("p1", 1))
    relay = asyncio.create_task(relaying.Relay(database, publish).run_while_leading())
    await within(5, published)
    await end_lease(database, relaying.LEASE)
    async with leadership.leadership(database, relaying.LEASE):
        go_on.set()
        await asyncio.wait({relay}, timeout=FOLLOWED_SECONDS * pace())

        assert isinstance(relay.exception(), LeadershipLost)
        assert not await is_empty(database)


async def test_a_relay_that_was_frozen_is_followed_and_deletes_nothing_when_it_goes_on(
    fresh_environment: Environment, database: Database
) -> None:
    event = an_event("p1", 1)
    await record(database, event)
    url = fresh_environment.database_urls["onboarding"]
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.lease_holder"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"BANKSIDE_ONBOARDING_DATABASE_URL": url},
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    follows, go_on = asyncio.Event(), asyncio.Event()

    async def publish(_: Sequence[Event]) -> Collection[str]:
        follows.set()
        await go_on.wait()
        return ()

    try:
        async with asyncio.timeout(20 * pace()):
            assert await holder.stdout.readline() == f"publishing {event.event_id}\n".encode()
        follower = asyncio.create_task(relaying.Relay(database, publish).run_while_leading())

        holder.send_signal(signal.SIGSTOP)
        await within(FOLLOWED_SECONDS, follows)
        holder.stdin.write(b"\n")
        holder.send_signal(signal.SIGCONT)
        async with asyncio.timeout(20 * pace()):
            said = [line async for line in holder.stdout]

        assert said[-1] == b"lost\n"
        assert not await is_empty(database)
        go_on.set()
        await until(lambda: is_empty(database))
        follower.cancel()
        await asyncio.wait({follower})
    finally:
        if holder.returncode is None:
            holder.kill()
        await holder.communicate()


async def test_sessions_of_clients_that_are_gone_are_ended_by_keepalives(
    database: Database,
) -> None:
    async with database.transaction() as connection:
        for setting, value in (
            ("tcp_keepalives_idle", "5"),
            ("tcp_keepalives_interval", "2"),
            ("tcp_keepalives_count", "3"),
            ("tcp_user_timeout", "10000"),
        ):
            shown = await connection.execute(text(f"SHOW {setting}"))
            assert shown.scalar_one() == value


@pytest.mark.parametrize("how", ["transaction", "autocommit", "driver", "driver_transaction"])
async def test_a_statement_on_a_connection_that_died_ends_and_gives_its_place_back(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(engine, "STATEMENT_SECONDS", math.ceil(pace()))
    async with wire_to(fresh_environment.database_urls["onboarding"]) as wire:
        database = open_database(wire.url, "tests", pool_size=1)
        await use(database, how)
        wire.stall()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(STUCK_SECONDS * pace()) as stuck:
                await use(database, how)
        assert not stuck.expired()
        wire.cut()
        async with asyncio.timeout(6 * pace()):
            await use(database, how)

        await database.close()


async def use(database: Database, how: str) -> None:
    async with getattr(database, how)() as connection:
        statement = "SELECT 1" if how.startswith("driver") else text("SELECT 1")
        await connection.execute(statement)
