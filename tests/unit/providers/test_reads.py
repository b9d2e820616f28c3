from __future__ import annotations

import asyncio
from decimal import Decimal

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from libs.backoff import Backoff
from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.providers.circuit import Circuit
from libs.providers.errors import ProviderRefusal
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.sessions import open_session
from tests.support.pace import pace
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from tests.unit.providers.conftest import (
    Provider,
    drops,
    hangs,
    refuses,
    says,
    soon,
)


async def test_an_answer_keeps_every_digit(provider: Provider, client: ProviderClient) -> None:
    provider.answers = [says(200, '{"amount": 1234567890123456.78, "count": 3}')]

    params = [("id", "x y"), ("id", "ü")]
    answer = await client.read("get", "/a", params, deadline=soon(), headers={"Source": "rail"})

    assert answer == {"amount": Decimal("1234567890123456.78"), "count": 3}
    method, path, _, headers = provider.seen[0]
    assert (method, path) == ("GET", "/bank/a?id=x+y&id=%C3%BC")
    assert (headers["Authorization"], headers["Source"]) == ("Bearer token", "rail")


async def test_a_read_is_repeated_after_a_server_error(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(500, "{}"), hangs, says(200, "[]")]

    answer = await client.read("get", "/a", deadline=soon())

    assert answer == []
    assert len(provider.seen) == 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (says(503, "{}"), ProviderError),
        (drops, ProviderError),
        (says(200, "<html>"), ProviderError),
        (says(302, "{}"), ProviderError),
        (says(404, "<html>"), ProviderError),
        (hangs, ProviderTimeout),
        (refuses(401, "unauthorized"), Unavailable),
        (refuses(403, "forbidden"), Unavailable),
        (refuses(429, "slow_down"), Unavailable),
        (refuses(408, "timeout"), Unavailable),
        (refuses(425, "too_early"), Unavailable),
    ],
)
async def test_what_cannot_be_used_becomes_a_contract_error(
    provider: Provider, client: ProviderClient, answer: object, error: type[Exception]
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    with pytest.raises(error):
        await client.read("get", "/a", deadline=soon())


async def test_reads_that_fail_are_logged_with_the_cause_once_for_each_kind(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(500, "{}")] * 4 + [refuses(429, "slow_down")] * 2

    with capture_logs() as logs:
        for operation in ("get_operation", "get_wire", "get_wire"):
            with pytest.raises((ProviderError, Unavailable)):
                await client.read(operation, "/a", deadline=soon())

    lines = [line for line in logs if line["event"] == "attempt_failed"]
    assert [(line["operation"], line["failure"], line["status"]) for line in lines] == [
        ("get_operation", "server_error", 500),
        ("get_wire", "server_error", 500),
        ("get_wire", "turned_away", 429),
    ]
    assert {line["provider"] for line in lines} == {"bank"}


async def test_a_refusal_is_told_at_once(provider: Provider, client: ProviderClient) -> None:
    provider.answers = [refuses(404, "not_found")]

    with pytest.raises(ProviderRefusal) as refusal:
        await client.read("get", "/a", deadline=soon())

    assert (refusal.value.status, refusal.value.code) == (404, "not_found")
    assert refusal.value.message == "No, said the bank."
    assert "said" not in str(refusal.value)
    assert len(provider.seen) == 1


async def test_a_read_ends_by_its_deadline(
    provider: Provider, session: aiohttp.ClientSession
) -> None:
    provider.answers = [hangs]
    client = ProviderClient("bank", provider.url, "token", session, timeout_seconds=20)

    async with asyncio.timeout(5 * pace()):
        with pytest.raises(ProviderTimeout):
            await client.read("get", "/a", deadline=soon(0.3))


async def test_nothing_is_sent_after_the_deadline(
    provider: Provider, client: ProviderClient
) -> None:
    with pytest.raises(ProviderTimeout):
        await client.read("get", "/a", deadline=soon(-1))

    assert provider.seen == []


async def test_an_answer_too_large_is_not_read_to_its_end(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(200, '"' + "x" * 9 * 1024 * 1024 + '"')]

    with pytest.raises(ProviderError):
        await client.read("get", "/a", deadline=soon())


async def test_a_provider_that_is_not_there_is_unavailable() -> None:
    [port] = free_ports(1)
    async with open_session(1) as session:
        client = ProviderClient("bank", f"http://127.0.0.1:{port}", "token", session)

        with pytest.raises(Unavailable):
            await client.read("get", "/a", deadline=soon())


async def test_a_failing_provider_is_left_alone_then_probed_and_used_again(
    provider: Provider, session: aiohttp.ClientSession
) -> None:
    now = 100.0
    circuit = Circuit(failures_to_open=3, pauses=Backoff(1, 10), clock=lambda: now)
    client = ProviderClient("bank", provider.url, "token", session, circuit=circuit)
    provider.answers = [says(500, "{}")]
    with pytest.raises(ProviderError):
        await client.read("get", "/a", deadline=soon())

    with pytest.raises(Unavailable):
        await client.read("get", "/a", deadline=soon())
    assert len(provider.seen) == 3
    provider.answers = [says(200, "{}")]
    now += 1

    assert await client.read("get", "/a", deadline=soon()) == {}
    assert not circuit.is_shown_open


async def test_a_near_deadline_is_not_held_against_the_provider(
    provider: Provider, session: aiohttp.ClientSession
) -> None:
    circuit = Circuit(failures_to_open=1)
    client = ProviderClient("bank", provider.url, "token", session, circuit=circuit)
    provider.answers = [hangs]

    with pytest.raises(ProviderTimeout):
        await client.read("get", "/a", deadline=soon(0.1))

    assert not circuit.is_shown_open


async def test_the_wait_for_a_connection_is_not_held_against_the_provider(
    provider: Provider,
) -> None:
    let_go, timeout_seconds, circuit = asyncio.Event(), 0.3 * pace(), Circuit(failures_to_open=1)

    async def slow(_: web.Request) -> web.StreamResponse:
        await let_go.wait()
        return web.json_response({})

    provider.answers = [slow, says(200, "{}")]
    async with open_session(1) as session, asyncio.TaskGroup() as group:
        patient = ProviderClient("bank", provider.url, "token", session, timeout_seconds=60)
        client = ProviderClient(
            "bank",
            provider.url,
            "token",
            session,
            timeout_seconds=timeout_seconds,
            circuit=circuit,
        )
        occupying = group.create_task(patient.read("get", "/a", deadline=soon(60)))
        await eventually("it uses the connection", lambda: has_come(provider))

        waiting = group.create_task(client.read("get", "/b", deadline=soon(60)))
        with pytest.raises(ProviderTimeout):
            await client.read("get", "/c", deadline=soon(2 * timeout_seconds))
        let_go.set()
        answers = [await occupying, await waiting]

    assert answers == [{}, {}]
    assert provider.requests == ["GET /bank/a", "GET /bank/b"]
    assert not circuit.is_shown_open


async def test_an_open_circuit_is_told_at_once_while_all_connections_are_in_use(
    provider: Provider,
) -> None:
    circuit = Circuit(failures_to_open=1)
    circuit.failed()
    provider.answers = [hangs]
    async with open_session(1) as session:
        client = ProviderClient("bank", provider.url, "token", session, timeout_seconds=60)
        refused = ProviderClient("bank", provider.url, "token", session, circuit=circuit)
        occupying = asyncio.create_task(client.read("get", "/a", deadline=soon(60)))
        await eventually("it uses the connection", lambda: has_come(provider))

        with pytest.raises(Unavailable):
            await refused.read("get", "/b", deadline=soon(60))

        occupying.cancel()
        await asyncio.gather(occupying, return_exceptions=True)


async def has_come(provider: Provider) -> bool:
    return bool(provider.seen)


def test_a_path_segment_cannot_leave_its_place() -> None:
    assert segment("../a/b?c#d") == "..%2Fa%2Fb%3Fc%23d"
