"""One caller holds connections, headers and bodies; others are served as ever, also at the same address."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from typing import cast

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from deploy.local.ports import LOOPBACK
from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import GetBalance
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.persistence.engine import open_database
from services.gateway import repository
from services.gateway.bodies import PER_CALLER
from services.gateway.credentials import secret_context
from services.gateway.requests import MAX_BODY_BYTES
from tests.integration.gateway.desk import (
    Desk,
    a_balance,
    answering,
    carrying_out,
    desk_at,
    gateway_process,
    raw_request,
    signed_request,
    until,
)
from tests.integration.gateway.test_gateway_authentication import PASSED, TARGET, headers_of
from tests.integration.gateway.test_gateway_idempotency import Service
from tests.integration.tables import rows
from tests.support.infrastructure import Infrastructure
from tests.support.memory import resident_mebibytes
from tests.support.pace import pace
from tests.support.stack import Stack

MOST = 160
"""Connections from one address."""
PERSON = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bounded_gateway(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """A gateway that takes few connections from one address, and waits 2 s for headers and longer for bodies."""
    environment = infrastructure.create()
    async with gateway_process(
        environment,
        tmp_path_factory.mktemp("gateway"),
        BANKSIDE_GATEWAY_CONNECTIONS_PER_ADDRESS=str(MOST),
        BANKSIDE_GATEWAY_STALLED_SECONDS="2",
        BANKSIDE_GATEWAY_BODY_SECONDS="60",
    ) as stack:
        yield stack
    infrastructure.drop(environment)


@pytest_asyncio.fixture
async def bounded(bounded_gateway: Stack) -> AsyncIterator[Desk]:
    async with desk_at(bounded_gateway) as desk:
        yield desk


@asynccontextmanager
async def connected(desk: Desk, sent: Sequence[bytes]) -> AsyncIterator[list[Streams]]:
    """A connection for each of these bytes, which are sent on it."""
    port = int(desk.base_url.rpartition(":")[2])
    opened: list[Streams] = []
    try:
        for data in sent:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            opened.append((reader, writer))
            writer.write(data)
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()  # with what the gateway has not read of it


async def is_closed(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Whether the other side ends it within this time, without a word."""
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


async def test_idle_connections_make_room_and_those_of_signed_requests_stay(bounded: Desk) -> None:
    key = await bounded.key()
    reused: list[str] = []
    tracing = aiohttp.TraceConfig()

    async def note(*_: object) -> None:
        reused.append("reused")

    tracing.on_connection_reuseconn.append(note)
    async with aiohttp.ClientSession(trace_configs=[tracing]) as session:

        async def served() -> int:
            url = URL(bounded.base_url + TARGET, encoded=True)
            async with session.get(url, headers=headers_of(key)) as answer:
                return answer.status

        before = await served()  # on the connection that is kept for `after`
        async with connected(bounded, [b""] * 3 * MOST) as idle:
            closed = await asyncio.gather(*(is_closed(reader, 2 * pace()) for reader, _ in idle))
            other = await bounded.send(headers_of(key), TARGET)
            after = await served()

    assert (before, other.status, after, reused) == (PASSED, PASSED, PASSED, ["reused"])
    assert MOST * 2 <= sum(closed) < MOST * 3
    assert closed == sorted(closed, reverse=True), "the oldest go first"


@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\nHost: gateway\r\nX-Slow: "])
async def test_headers_that_do_not_come_to_an_end_end_the_connection(
    bounded: Desk, sent: bytes
) -> None:
    async with connected(bounded, [sent]) as [(reader, _)]:
        assert await is_closed(reader, 10 * pace())


async def test_half_bodies_make_room_for_those_of_others_and_for_newer_ones(bounded: Desk) -> None:
    body = b'{"unknown": 1}'
    hostile, honest = await bounded.key(), await bounded.key()
    half = signed_request(hostile, "PATCH", PERSON, body)[: -len(body) // 2]
    slow = signed_request(honest, "PATCH", PERSON, body)
    async with connected(bounded, [slow[:-1], *[half] * (PER_CALLER + 1)]) as opened:
        (honest_reader, honest_writer), *halves = opened
        answered = {asyncio.create_task(status_of(reader)) for reader, _ in halves}
        given_up, waiting = await asyncio.wait(answered, return_when=asyncio.FIRST_COMPLETED)
        whole = await bounded.raw(signed_request(hostile, "PATCH", PERSON, body))
        honest_writer.write(slow[-1:])
        passed = await status_of(honest_reader)
        for task in waiting:
            task.cancel()

    assert ([task.result() for task in given_up], whole.status, passed) == ([408], PASSED, PASSED)


async def test_a_body_that_comes_late_is_judged_by_the_key_as_it_is_by_then(
    bounded: Desk,
) -> None:
    body = b'{"unknown": 1}'
    key, other = await bounded.key(), await bounded.key()
    late, in_time = (signed_request(one, "PATCH", PERSON, body) for one in (key, other))
    await bounded.raw(signed_request(key, "PATCH", PERSON, body))  # its secret of now is read
    async with connected(bounded, [late[:-1], in_time[:-1]]) as [(reader, writer), (beside, then)]:
        async with bounded.database.transaction() as connection:
            sealed = bounded.keyring.seal("the new secret", secret_context(key.subscription_key))
            await repository.rotate(connection, key.subscription_key, sealed, overlap_hours=0)

        async def is_rotated() -> bool:
            return (await bounded.raw(signed_request(key, "PATCH", PERSON, body))).status == 401

        assert await until(is_rotated, 8)
        writer.write(late[-1:])
        then.write(in_time[-1:])

        assert (await status_of(reader), await status_of(beside)) == (401, PASSED)


async def status_of(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(20 * pace()):
        return int((await reader.readuntil(b"\r\n")).split()[1])


async def test_who_does_not_read_is_given_up(bounded: Desk) -> None:
    """The answer is more than the buffers of both ends take."""

    async def balance(_p: Principal, _command: GetBalance, _deadline: float) -> Result:
        return Result(a_balance("x" * 8 * 2**20, Decimal(1)))

    key = await bounded.key()
    asked = signed_request(key, "GET", "/partner/reseller/accounts/balance/acct_1", b"")
    metrics = f"http://{LOOPBACK}:{bounded.stack.services['gateway'].admin_port}/metrics"
    async with (
        answering(bounded.environment, "ledger_read", {ledger_read.GET_BALANCE.name: balance}),
        connected(bounded, [asked]) as [(_, writer)],
    ):
        cast(asyncio.Transport, writer.transport).pause_reading()

        async def is_given_up() -> bool:
            async with bounded.session.get(metrics) as answer:
                return 'closed_total{bound="unread_answer"} 1.0' in await answer.text()

        await until(is_given_up)


async def test_without_credentials_a_body_is_not_waited_for(bounded: Desk) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": "1000"}

    answer = await bounded.raw(raw_request("PATCH", PERSON, headers), seconds=10)

    assert (answer.status, answer.code) == (401, "missing_credentials")


async def test_what_is_expected_changes_no_answer(bounded: Desk) -> None:
    asks_first = {"Content-Length": "5", "Expect": "100-continue"}
    of_old = raw_request("PATCH", PERSON, asks_first).replace(b"HTTP/1.1", b"HTTP/1.0")

    assert (await bounded.raw(of_old, seconds=10)).status == 401, "HTTP/1.0 has no interim answers"
    expecting = {"Expect": "more"}
    for method, path, status in (
        ("GET", "/", 200),
        ("GET", "/nowhere", 404),
        ("PUT", PERSON, 405),
    ):
        answer = await bounded.raw(raw_request(method, path, expecting), seconds=10)
        assert answer.status == status
        assert status == 200 or answer.headers["x-request-id"]
        assert status != 405 or answer.headers["allow"] == "PATCH"


async def test_a_hundred_headers_of_forwarded_addresses_are_refused_at_once(bounded: Desk) -> None:
    forged = [("X-Forwarded-For", "1," * 4000)] * 100

    answer = await bounded.raw(raw_request("GET", TARGET, forged), seconds=10)

    assert answer.status == 431


async def test_requests_that_are_refused_for_their_headers_are_not_kept(bounded: Desk) -> None:
    refused = raw_request("GET", TARGET, [("X-Forwarded-For", "1," * 4000)] * 100)
    gateway = bounded.stack.services["gateway"].pid

    async def refuse(times: int) -> float:
        """What the process holds then, in MiB."""
        for _ in range(times):
            assert (await bounded.raw(refused, seconds=20)).status == 431
        return resident_mebibytes(gateway)

    before = await refuse(30)

    assert await refuse(90) - before < 25  # they are 45 MiB


async def test_bodies_are_not_kept_while_their_commands_wait(bounded: Desk) -> None:
    key, service = await bounded.key(), Service()
    service.may_end.clear()
    body = json.dumps({"first_name": "Ada"}).encode().ljust(MAX_BODY_BYTES)
    database = open_database(bounded.environment.database_urls["onboarding"], "onboarding")
    handlers = {onboarding.UPDATE_PERSON.name: service}

    async def waiting() -> int:
        [row] = await rows(database, "SELECT count(*) FROM inbox WHERE finished_at IS NULL")
        return int(row[0])

    held = []
    async with (
        AsyncExitStack() as opened,
        carrying_out(bounded.environment, handlers, database=database),
    ):
        for count in range(10, 120, 10):
            requests = [signed_request(key, "PATCH", PERSON, body) for _ in range(10)]
            await opened.enter_async_context(connected(bounded, requests))

            async def all_wait(count: int = count) -> bool:
                return await waiting() == count

            await until(all_wait)
            held.append(resident_mebibytes(bounded.stack.services["gateway"].pid))
        service.may_end.set()
    await database.close()

    assert held[-1] - held[0] < 12, "their bodies are 25 MiB"
