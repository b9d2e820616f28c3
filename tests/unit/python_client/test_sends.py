"""Sends of the Python client that fail, and the connections that they are made on."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

import bankside_client
from bankside_client import AsyncClient, OutcomeUnknown, Unavailable, client, exchange
from deploy.local.ports import LOOPBACK
from libs.contracts.exact_json import encode
from tests.support.certificates import Authority
from tests.support.pace import pace, waiting_pace
from tests.unit.client.answering import HANG, KEY, gateway, problem, success
from tests.unit.python_client.calling import SENT, WIRE, calling, of_the_callers

FORKS = """
import os, sys
from bankside_client import Client

client = Client(*sys.argv[1:])
client.get_own_wire_policy()
child = os.fork()
client.get_own_wire_policy()
if child:
    _, status = os.waitpid(child, 0)
    client.get_own_wire_policy()
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize(
    ("failure", "sends"), [(httpx.LocalProtocolError, 3), (OSError, 3), (RuntimeError, 1)]
)
async def test_any_failure_of_a_send_is_a_lost_answer_with_its_key(
    kind: str, failure: type[Exception], sends: int
) -> None:
    received: list[httpx.Request] = []

    def fail(request: httpx.Request) -> httpx.Response:
        received.append(request)
        raise failure("It failed.")

    async with (
        of_the_callers(kind, transport=httpx.MockTransport(fail)) as http,
        calling(kind, "http://a", http=http) as call,
    ):
        with pytest.raises(OutcomeUnknown) as raised:
            await call("send_wire", idempotency_key="k", **SENT)

    assert (raised.value.code, raised.value.idempotency_key) == ("no_answer", "k")
    assert isinstance(raised.value.__cause__, failure)
    assert len(received) == sends
    assert {request.headers["Idempotency-Key"] for request in received} == {"k"}


async def test_a_failure_of_tls_after_a_whole_request_is_a_lost_answer(
    kind: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    trusting = ssl.create_default_context(cafile=authority.file)
    async with (
        of_the_callers(kind, verify=trusting) as http,
        answering_without_tls(authority.identity().context()) as (url, received),
        calling(kind, url, http=http) as call,
    ):
        with pytest.raises(OutcomeUnknown) as raised:
            await call("send_wire", idempotency_key="k", **SENT)

    assert (raised.value.code, raised.value.idempotency_key) == ("no_answer", "k")
    assert len(received) == 3


async def test_a_proxy_that_refuses_to_connect_has_sent_nothing(kind: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    asked: list[bytes] = []
    server = await asyncio.start_server(refuse, LOOPBACK, 0)
    proxy = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    async with (
        server,
        of_the_callers(kind, proxy=proxy) as http,
        calling(kind, "https://bank.example.com", http=http) as call,
    ):
        with pytest.raises(Unavailable) as raised:
            await call("send_wire", **SENT)

    assert raised.value.code == "no_connection"
    assert raised.value.detail == "There is no connection to bank.example.com: 403 Forbidden."
    assert [request.startswith(b"CONNECT bank.example.com:443 ") for request in asked] == [True] * 3


async def test_what_is_no_error_such_as_cancellation_ends_a_call_as_it_is(kind: str) -> None:
    class Canceled(BaseException):
        pass

    def cancel(request: httpx.Request) -> httpx.Response:
        raise Canceled

    async with (
        of_the_callers(kind, transport=httpx.MockTransport(cancel)) as http,
        calling(kind, "http://a", http=http) as call,
    ):
        with pytest.raises(Canceled):
            await call("send_wire", **SENT)


class TimeLimit(Exception):
    """Thrown into a call by a signal, as Celery's SoftTimeLimitExceeded."""


@pytest.mark.parametrize("moment", ["reading the answer", "signing the second send"])
async def test_a_time_limit_after_a_send_leaves_the_outcome_unknown_with_its_key(
    kind: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[httpx.Request] = []
    at = {"reading the answer": "retry_after", "signing the second send": "signed_headers"}[moment]

    def answer(request: httpx.Request) -> httpx.Response:
        received.append(request)
        monkeypatch.setattr(exchange, at, Mock(side_effect=TimeLimit))
        return httpx.Response(502)

    async with (
        of_the_callers(kind, transport=httpx.MockTransport(answer)) as http,
        calling(kind, "http://a", http=http) as call,
    ):
        with pytest.raises(OutcomeUnknown) as raised:
            await call("send_wire", **SENT)

    [sent] = received
    assert raised.value.code == "no_answer"
    assert raised.value.idempotency_key == sent.headers["Idempotency-Key"]
    assert raised.value.request_id == sent.headers["X-Request-Id"]
    assert isinstance(raised.value.__cause__, TimeLimit)


@pytest.mark.parametrize("limit", [TimeLimit, TimeoutError])
async def test_a_time_limit_in_the_pause_between_two_sends_leaves_the_outcome_unknown(
    limit: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "time", Mock(wraps=time, sleep=Mock(side_effect=limit)))
    async with (
        gateway(problem(503, "unavailable")) as server,
        calling("sync", server.base_url) as call,
    ):
        with pytest.raises(OutcomeUnknown) as raised:
            await call("send_wire", **SENT)

    [sent] = server.received
    assert raised.value.idempotency_key == sent.headers["Idempotency-Key"]
    assert isinstance(raised.value.__cause__, limit)


async def test_a_time_limit_in_a_pause_of_a_read_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "time", Mock(wraps=time, sleep=Mock(side_effect=TimeLimit)))
    async with (
        gateway(problem(503, "unavailable")) as server,
        calling("sync", server.base_url) as call,
    ):
        with pytest.raises(TimeLimit):
            await call("get_own_wire_policy")


async def test_a_time_limit_before_anything_is_sent_stays_what_it_is(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "signed_headers", Mock(side_effect=TimeLimit))
    async with calling(kind, "http://a") as call:
        with pytest.raises(TimeLimit):
            await call("send_wire", **SENT)


@pytest.mark.parametrize("name", ["send_wire", "get_own_wire_policy"])
async def test_a_timeout_of_asyncio_has_the_key_of_a_write_in_a_note(name: str) -> None:
    keys: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers.get("Idempotency-Key"))
        timeout.reschedule(asyncio.get_running_loop().time())
        return httpx.Response(502, headers={"Retry-After": "20"})

    async with (
        of_the_callers("async", transport=httpx.MockTransport(answer)) as http,
        calling("async", "http://a", http=http) as call,
    ):
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(None) as timeout:
                await call(name, **(SENT if name == "send_wire" else {}))

    notes = getattr(raised.value.__context__, "__notes__", [])
    assert isinstance(raised.value.__context__, asyncio.CancelledError)
    assert notes == [
        f"A write was sent under the Idempotency-Key {key}, and may have been carried out."
        for key in keys
        if key is not None
    ]


INTERIM = [b"HTTP/1.1 102 Processing\r\n\r\n"] * 200
HEADERS = [b"HTTP/1.1 200 OK\r\n", *(b"X-Part-%d: x\r\n" % number for number in range(200))]
GZIP = [
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
    *(b"1\r\n%c\r\n" % byte for byte in b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"n" * 190),
]


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [("async", INTERIM), ("async", HEADERS), ("async", GZIP), ("sync", GZIP)],
    ids=["interim answers", "headers", "body without content", "body without content, sync"],
)
async def test_an_answer_that_comes_in_small_pieces_is_given_up_in_time(
    kind: str, pieces: list[bytes]
) -> None:
    settings = {"timeout_seconds": 0.3 * pace(), "patience_seconds": 0}
    async with trickling(pieces) as (url, sent), calling(kind, url, **settings) as call:
        with pytest.raises(OutcomeUnknown) as raised:
            await call("send_wire", **SENT)

    assert isinstance(raised.value.__cause__, httpx.ReadTimeout)
    assert len(sent) < len(pieces), "the client closes its connection before the last piece"


async def test_a_call_that_finds_no_free_connection_has_sent_nothing(kind: str) -> None:
    limits = httpx.Limits(max_connections=1)
    hurried = {"timeout_seconds": waiting_pace(), "patience_seconds": 0}
    async with (
        gateway(HANG) as server,
        of_the_callers(kind, limits=limits) as http,
        calling(kind, server.base_url, http=http, patience_seconds=0) as first,
        calling(kind, server.base_url, http=http, **hurried) as second,
    ):
        holding = asyncio.create_task(first("get_own_wire_policy"))
        await server.has_received(1)
        with pytest.raises(Unavailable) as raised:
            await second("send_wire", **SENT)
        server.ends.set()
        with pytest.raises(OutcomeUnknown):
            await holding

    assert raised.value.code == "no_connection"
    assert isinstance(raised.value.__cause__, httpx.PoolTimeout)


async def test_answers_of_a_transport_that_gives_them_whole_are_read(kind: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=encode({"message": "Done", "data": WIRE}))

    async with (
        of_the_callers(kind, transport=httpx.MockTransport(answer)) as http,
        calling(kind, "http://a", http=http) as call,
    ):
        wire = await call("get_wire", "t1")

    assert wire.data.transaction_id == "t1"


async def test_reading_an_answer_takes_time_in_proportion_to_its_length(kind: str) -> None:
    """Of 50,000 pieces: a copy of the body with each of them would be 125 GB."""
    note = b"x" * 100
    pieces = [b'{"message":"Done","data":{"note":"', *[note] * 50_000, b'"}}']

    class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return iter(pieces)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Pieces()))
    async with (
        of_the_callers(kind, transport=transport) as http,
        calling(kind, "http://a", http=http) as call,
    ):
        began = time.process_time()
        wire = await call("get_wire", "t1")
        took = time.process_time() - began

    assert len(wire.data.note) == 50_000 * len(note)
    assert took < 4 * pace()


async def test_event_loops_may_use_an_async_client_one_after_another() -> None:
    async with gateway(success(WIRE)) as server:
        client = AsyncClient(server.base_url, KEY.subscription_key, KEY.secret)

        async def cancel() -> str:
            return (await client.cancel_wire("t1")).data.transaction_id

        canceled = [await asyncio.to_thread(asyncio.run, cancel()) for _ in range(2)]

    assert canceled == ["t1", "t1"]
    assert len(server.received) == 2, "none is sent on a connection of the loop before"


async def test_after_a_fork_each_process_has_connections_of_its_own() -> None:
    package = str(Path(bankside_client.__file__).parents[1])
    async with gateway(success({})) as server:
        given = (server.base_url, KEY.subscription_key, KEY.secret)
        await asyncio.to_thread(
            subprocess.run,
            (sys.executable, "-c", FORKS, *given),
            env={**os.environ, "PYTHONPATH": package},
            check=True,
            timeout=60 * pace(),
        )

    ports = [request.port for request in server.received]
    assert sorted(map(ports.count, set(ports))) == [1, 3]
    assert ports[0] == ports[-1], "the parent's connection stays open"


async def test_a_client_that_is_closed_sends_nothing(kind: str) -> None:
    async with gateway(success(WIRE)) as server:
        async with calling(kind, server.base_url) as call:
            await call("get_wire", "t1")
        with pytest.raises(RuntimeError, match="The client is closed; nothing was sent"):
            await call("send_wire", **SENT)

    assert len(server.received) == 1


@asynccontextmanager
async def answering_without_tls(context: ssl.SSLContext) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A TLS server that reads each request whole, and answers with bytes that are no TLS; what it received."""
    received: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"}"))
        os.write(writer.get_extra_info("socket").fileno(), b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.transport.abort()

    server = await asyncio.start_server(answer, LOOPBACK, 0, ssl=context)
    async with server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}", received


@asynccontextmanager
async def trickling(pieces: list[bytes]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers one request with a piece each 0.02 s, until the client closes; the pieces that it sent."""
    sent: list[bytes] = []
    answering: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        closed = asyncio.create_task(reader.read())
        for piece in pieces:
            writer.write(piece)
            sent.append(piece)
            await asyncio.wait({closed}, timeout=0.02)
            if closed.done():
                break
        writer.transport.abort()
        await asyncio.gather(closed, return_exceptions=True)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.append(asyncio.create_task(answer(reader, writer)))

    server = await asyncio.start_server(begin, LOOPBACK, 0)
    async with server:
        yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}", sent
        await asyncio.gather(*answering)
