"""A signed request passes once: over processes, crashes of the database, and the turn of partitions."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import REGISTRY
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.contracts.errors import NonceReused, TimestampOutOfWindow
from libs.contracts.operation import RateClass
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring
from services.gateway.admission import Admission
from services.gateway.authentication import Authentication
from services.gateway.credentials import Credentials
from services.gateway.nonce_partitions import PARTITION_SECONDS, maintain, maintain_as_of
from tests.integration.gateway.desk import Desk, make_key, running_gateway, until
from tests.integration.gateway.test_gateway_authentication import PASSED, TARGET, headers_of, off_by
from tests.integration.tables import rows
from tests.support.api import Answer, Key
from tests.support.clocks import clock_off_by
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of
from tests.support.own_servers import OwnPostgres, own_postgres
from tests.support.pace import pace

ROUNDS, RACERS = 8, 50
WINDOW_SECONDS = 300


async def test_of_many_equal_requests_racing_over_two_processes_exactly_one_passes(
    desk: Desk,
) -> None:
    key = await desk.key()

    for _ in range(ROUNDS):
        headers = headers_of(key)
        answers = await asyncio.gather(*(desk.send(headers, TARGET) for _ in range(RACERS)))

        assert Counter(a.code if a.status == 401 else "passed" for a in answers) == {
            "passed": 1,
            "nonce_reused": RACERS - 1,
        }


async def test_different_requests_racing_with_one_key_all_pass(desk: Desk) -> None:
    key = await desk.key()

    answers = await asyncio.gather(*(desk.send(headers_of(key), TARGET) for _ in range(200)))

    assert {answer.status for answer in answers} == {PASSED}


async def test_a_request_does_not_pass_while_the_database_is_away_nor_again_after_its_crash(
    empty_environment: Environment, tmp_path: Path
) -> None:
    async with own_postgres(empty_environment) as postgres:
        environment = empty_environment.with_urls(database_urls=postgres.database_urls)
        async with running_gateway(environment, tmp_path) as desk:
            key = await desk.key()
            now, ahead = headers_of(key), headers_of(key, timestamp=off_by(290))
            before = [await desk.send(headers, TARGET) for headers in (now, ahead)]
            first_life = await started_at(postgres)

            postgres.kill()

            async def refusal() -> Answer | None:
                answer = await desk.send(headers_of(key), TARGET)
                return None if answer.status == PASSED else answer

            async def lives_again() -> bool:
                return await started_at(postgres) not in {None, first_life}

            async def answer_to(headers: dict[str, str]) -> Answer | None:
                answer = await desk.send(headers, TARGET)
                return None if answer.status == 503 else answer

            away = await until(refusal)
            await until(lives_again)
            after = [await until(partial(answer_to, headers)) for headers in (now, ahead)]

    assert [answer.status for answer in before] == [PASSED, PASSED]
    assert (away.status, away.code) == (503, "unavailable")
    assert away.headers["Retry-After"]
    assert [answer.code for answer in after] == ["nonce_reused", "nonce_reused"]


async def started_at(postgres: OwnPostgres) -> object:
    """Since when the server has been running; None while it is not."""
    try:
        connection = await asyncpg.connect(postgres.database_urls["gateway"], timeout=5 * pace())
    except (OSError, TimeoutError, asyncpg.CannotConnectNowError):
        return None
    try:
        return await connection.fetchval("SELECT pg_postmaster_start_time()")
    except (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError):
        return None
    finally:
        connection.terminate()


async def test_a_stuck_database_delays_an_answer_no_longer_than_the_deadline(
    gateway_environment: Environment, tmp_path: Path
) -> None:
    async with running_gateway(
        gateway_environment, tmp_path, BANKSIDE_GATEWAY_DEADLINE_SECONDS="4.1"
    ) as desk:
        key = await desk.key()
        holder = await asyncpg.connect(desk.environment.database_urls["gateway_owner"])
        async with holder.transaction():
            await holder.execute("LOCK TABLE nonces IN ACCESS EXCLUSIVE MODE")

            async with asyncio.timeout(8 * pace()):
                answer = await desk.send(headers_of(key), TARGET)
        await holder.close()

    assert (answer.status, answer.code) == (503, "unavailable")


@dataclass(frozen=True)
class Nonces:
    """The database as a gateway that has just started leaves it."""

    database: Database
    keyring: Keyring
    owner_url: str = field(repr=False)

    async def key(self) -> Key:
        return await make_key(self.database, self.keyring)

    async def put_clock_on(self, seconds: float) -> float:
        """The time by which the database judges bounds from here on, so many seconds from now."""
        owner = await asyncpg.connect(self.owner_url)
        await owner.execute(
            "CREATE OR REPLACE FUNCTION nonce_clock() RETURNS double precision LANGUAGE sql AS"
            f" 'SELECT (extract(epoch FROM clock_timestamp()) + {seconds:f})::double precision'"
        )
        await owner.close()
        return time.time() + seconds

    async def maintain_later(self, seconds: float, window_seconds: int = WINDOW_SECONDS) -> None:
        now = await self.put_clock_on(seconds)
        await maintain_as_of(self.database, window_seconds, now)

    async def partitions(self) -> set[int]:
        found = await rows(
            self.database,
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'nonces'::regclass",
        )
        return {int(row[0].rpartition("_")[2]) for row in found}

    async def lock_as_an_admission(self) -> None:
        """Raises where PostgreSQL lets it wait behind the dropping of partitions for long."""
        async with self.database.transaction() as connection:
            await connection.execute(text(f"SET LOCAL lock_timeout = {int(1500 * pace())}"))
            await connection.execute(text("LOCK TABLE nonces IN ROW EXCLUSIVE MODE"))

    async def longest_wait_of_dropping(self) -> str:
        """As PostgreSQL keeps it: what an admission waits on a slow machine says little."""
        settings = "SELECT unnest(proconfig) FROM pg_proc WHERE oid = 'drop_nonce_partitions()'::regprocedure"
        [found] = [row[0] for row in await rows(self.database, settings) if "timeout" in row[0]]
        return str(found)

    async def recorded(self) -> int:
        return int((await rows(self.database, "SELECT count(*) FROM nonces"))[0][0])


@pytest_asyncio.fixture
async def nonces(nonces_without_partitions: Nonces) -> Nonces:
    await maintain(nonces_without_partitions.database, WINDOW_SECONDS)
    return nonces_without_partitions


@pytest_asyncio.fixture
async def nonces_without_partitions(fresh_environment: Environment) -> AsyncIterator[Nonces]:
    database = open_database(fresh_environment.database_urls["gateway"], "tests")
    yield Nonces(
        database,
        storage_of(fresh_environment.secrets, "gateway"),
        fresh_environment.database_urls["gateway_owner"],
    )
    await database.close()


class Gateway:
    """What decides in a gateway process whether a signed request passes, with a clock that is off by some seconds."""

    def __init__(
        self, nonces: Nonces, off_by_seconds: float = 0, window_seconds: int = WINDOW_SECONDS
    ) -> None:
        self._authentication = Authentication(
            Credentials(nonces.database, nonces.keyring),
            window_seconds=window_seconds,
            show_canonical=False,
            clock=lambda: time.time() + off_by_seconds,
        )
        self._admission = Admission(nonces.database)

    async def passes(self, headers: dict[str, str]) -> bool:
        """Raises the refusal."""
        sent = CIMultiDictProxy(CIMultiDict(headers))
        claim = await self._authentication.claim(sent)
        signed = await self._authentication.verify(claim, "GET", TARGET, b"")
        await self._admission.admit(signed, RateClass.READ)
        return True


async def test_partitions_reach_an_hour_ahead_and_leave_when_no_timestamp_of_theirs_can_pass(
    nonces: Nonces,
) -> None:
    await Gateway(nonces).passes(headers_of(await nonces.key()))
    now = time.time()
    before = await nonces.partitions()

    await nonces.maintain_later(3600)

    after = await nonces.partitions()
    assert min(before) <= now - WINDOW_SECONDS
    assert max(before) + PARTITION_SECONDS >= now + 3600
    assert min(after) > min(before)
    assert min(after) <= now + 3600 - WINDOW_SECONDS
    assert max(after) + PARTITION_SECONDS >= now + 7200
    assert await nonces.recorded() == 0


async def test_maintenance_twice_at_once_makes_each_partition_once(nonces: Nonces) -> None:
    later = await nonces.put_clock_on(7200)

    await asyncio.gather(
        *(maintain_as_of(nonces.database, WINDOW_SECONDS, later) for _ in range(4))
    )

    made = sorted(await nonces.partitions())
    assert made == list(range(made[0], made[-1] + 1, PARTITION_SECONDS))


async def test_a_reader_of_old_nonces_delays_their_dropping_and_nothing_else(
    nonces: Nonces,
) -> None:
    key = await nonces.key()
    before = await nonces.partitions()
    async with nonces.database.transaction() as dump:
        await dump.execute(text("SELECT count(*) FROM nonces"))

        assert await nonces.longest_wait_of_dropping() == "lock_timeout=100ms"
        maintaining = asyncio.create_task(nonces.maintain_later(PARTITION_SECONDS))
        while not maintaining.done():
            await nonces.lock_as_an_admission()
        await maintaining
        during = await nonces.partitions()
        assert await Gateway(nonces).passes(headers_of(key, timestamp=off_by(290)))
    await nonces.maintain_later(PARTITION_SECONDS)
    after = await nonces.partitions()

    assert before < during
    assert min(after) > min(before)


async def test_a_gateway_an_hour_behind_lets_nothing_in_whose_nonces_were_dropped(
    nonces: Nonces,
) -> None:
    then = int(time.time()) - 3600
    captured = headers_of(await nonces.key(), timestamp=str(then))
    right, behind = Gateway(nonces), Gateway(nonces, -3600)
    with clock_off_by(-3600):
        await maintain(nonces.database, WINDOW_SECONDS)

    with pytest.raises(TimestampOutOfWindow):
        await right.passes(captured)
    with pytest.raises(TimestampOutOfWindow):
        await behind.passes(captured)

    assert min(await nonces.partitions()) > then
    assert await nonces.recorded() == 0


async def test_a_gateway_an_hour_ahead_drops_no_nonce_that_could_pass_again(
    nonces: Nonces,
) -> None:
    headers = headers_of(await nonces.key())
    right = Gateway(nonces)
    first = await right.passes(headers)

    with clock_off_by(3600):
        await maintain(nonces.database, WINDOW_SECONDS)
    await maintain(nonces.database, WINDOW_SECONDS)

    assert first
    with pytest.raises(NonceReused):
        await right.passes(headers)


async def test_a_database_whose_clock_was_ahead_for_a_moment_refuses_no_request_afterwards(
    nonces_without_partitions: Nonces,
) -> None:
    nonces, an_hour_ago = nonces_without_partitions, Gateway(nonces_without_partitions, -3600)
    await nonces.maintain_later(-3600)

    await nonces.put_clock_on(0)
    with clock_off_by(-3600):
        await maintain(nonces.database, WINDOW_SECONDS)

    assert await an_hour_ago.passes(headers_of(await nonces.key(), timestamp=off_by(-3600)))


async def test_a_clock_that_is_off_shows(nonces: Nonces) -> None:
    with clock_off_by(3600), capture_logs() as logs:
        await maintain(nonces.database, WINDOW_SECONDS)

    ahead = REGISTRY.get_sample_value("bankside_clock_ahead_seconds")
    assert ahead == pytest.approx(3600, abs=60)
    assert [entry["event"] for entry in logs] == ["clock_differs"]


async def test_a_longer_window_does_not_bring_a_dropped_partition_back(nonces: Nonces) -> None:
    headers = headers_of(await nonces.key())
    assert await Gateway(nonces, window_seconds=30).passes(headers)
    # Ten minutes later, and the partition of the request is dropped.
    await nonces.maintain_later(30 + 120 + PARTITION_SECONDS, 30)
    floor = min(await nonces.partitions())

    await maintain(nonces.database, 900)  # as a gateway that starts with a longer window

    assert floor > int(headers["X-API-TIMESTAMP"])
    with pytest.raises(TimestampOutOfWindow):
        await Gateway(nonces, window_seconds=900).passes(headers)
    assert min(await nonces.partitions()) == floor


async def test_a_timestamp_without_a_partition_is_refused_and_its_neighbours_pass(
    nonces: Nonces,
) -> None:
    key = await nonces.key()
    late = headers_of(key, timestamp=str(int(time.time()) + 7200))

    with pytest.raises(TimestampOutOfWindow) as refusal:
        await Gateway(nonces, 7200).passes(late)

    assert await Gateway(nonces).passes(headers_of(key))
    assert refusal.value.extra is not None
    assert abs(refusal.value.extra["server_time"] - time.time()) < 60
