"""What an endpoint can cost: time, memory, connections; and that it costs the others nothing."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop

from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy
from services.webhook_dispatcher.adapters.lookups import Lookups
from services.webhook_dispatcher.adapters.poster import Timeouts, open_poster
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome
from tests.integration.webhooks.sending import HERE, NAME, SHORT, poster, to
from tests.support.names import Names
from tests.support.pace import pace
from tests.support.receivers import (
    Answer,
    Authority,
    Received,
    hangs,
    receiver,
    repeats,
    writes,
)
from tests.support.waiting import eventually

STUCK_SECONDS = 30.0
"""Much longer than the timeouts of `SHORT`."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + b"x" * 30_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def at_most(mebibytes: float) -> Iterator[None]:
    """What Python allocates meanwhile, at its highest. The receivers are in this process too."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < mebibytes * 2**20, f"{peak / 2**20:.1f} MiB"


@pytest.mark.parametrize(
    "answer",
    [
        repeats(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
        repeats(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x" * 65536),
        repeats(CHUNKED, b"1\r\nx\r\n" * 10_000),
        repeats(CHUNKED, b"1;" + b"x" * 60_000),
        repeats(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000),
        repeats(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 65536),
        repeats(b"HTTP/1.1 200 ", b"y" * 65536),
        repeats(b"", INTERIM * 1000),
        repeats(b"", OK * 1000),
        repeats(b"", BIG),
        repeats(CHUNKED + b"0\r\n", b"X: y\r\n" * 1000),
    ],
    ids=[
        "body",
        "body until the end",
        "tiny chunks",
        "a chunk's extension",
        "headers",
        "a header",
        "the reason",
        "interim responses",
        "responses",
        "responses with bodies",
        "trailers",
    ],
)
async def test_an_answer_without_an_end_costs_little_memory_and_ends_in_time(
    answer: Answer,
) -> None:
    async with receiver(answer) as endpoint, poster(timeouts=SHORT) as sender:
        with at_most(16):
            async with asyncio.timeout(STUCK_SECONDS * pace()):  # without a bound it never ends
                attempts = await asyncio.gather(
                    *(sender.post(to(endpoint.url())) for _ in range(8))
                )

    assert all(len(attempt.response_body or "") <= 16 * 1024 for attempt in attempts)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (repeats(b"", b"\r\n" * 32_768), "The answer is not HTTP, or its headers are too long."),
        (repeats(CHUNKED, b"1;" + b"x" * 60_000), "The connection broke within the answer."),
    ],
    ids=["empty lines", "a chunk's extension"],
)
async def test_an_endpoint_that_sends_on_without_a_body_is_cut_off(
    answer: Answer, error: str
) -> None:
    async with receiver(answer) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.error) == (AttemptOutcome.UNREACHABLE, error)


@pytest.mark.parametrize("flood", [OK * 1000, INTERIM * 1000, BIG], ids=["ok", "interim", "big"])
async def test_what_nobody_asked_for_ends_a_kept_connection(flood: bytes) -> None:
    go = asyncio.Event()

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await go.wait()
        while True:
            writer.write(flood)
            await writer.drain()

    async with receiver(answer) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))
        with at_most(16):
            go.set()
            await asyncio.wait_for(_until_gone(endpoint.port), 10 * pace())

    assert attempt.outcome is AttemptOutcome.SUCCEEDED


async def _until_gone(port: int) -> None:
    async def none() -> bool:
        return not _established(port)

    await eventually("the connection is closed", none)


def _established(port: int) -> list[str]:
    """Connections of this machine to or from a port that are open on the side that dialled."""
    lines = Path("/proc/self/net/tcp").read_text("ascii").splitlines()[1:]
    remote = [line for line in lines if line.split()[2].endswith(f":{port:04X}")]
    return [line for line in remote if line.split()[3] == "01"]


@pytest.mark.parametrize("begins", [True, False], ids=["within the answer", "before the answer"])
def test_an_endpoint_that_ignores_the_end_of_tls_is_cut_off(begins: bool) -> None:
    """Politely closed, uvloop would read from such a connection for 30 s."""
    authority = Authority()
    listening = socket.create_server(("127.0.0.1", 0))
    ended: list[float] = []
    arguments = (listening, authority.serving(NAME), begins, ended)
    thread = threading.Thread(target=_flood_after_the_end, args=arguments, daemon=True)
    thread.start()
    url = f"https://{NAME}:{listening.getsockname()[1]}/"

    async def post() -> Attempt:
        async with poster(timeouts=SHORT, ssl_context=authority.trusting()) as sender:
            attempt = await sender.post(to(url))
            await asyncio.to_thread(thread.join, 20)
            return attempt

    attempt = uvloop.run(post())
    listening.close()

    assert attempt.outcome is AttemptOutcome.TIMED_OUT
    assert len(ended) == 1


def _flood_after_the_end(
    listening: socket.socket, tls: ssl.SSLContext, begins: bool, ended: list[float]
) -> None:
    accepted, _ = listening.accept()
    with tls.wrap_socket(accepted, server_side=True) as connection:
        connection.recv(65536)
        if begins:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        time.sleep(SHORT.total + 0.2)  # until it has given up
        started = time.monotonic()
        try:
            while time.monotonic() - started < 10:
                connection.sendall(b"x" * 16384)
        except OSError:
            ended.append(time.monotonic() - started)


async def test_a_name_whose_servers_are_silent_delays_no_other() -> None:
    gate = threading.Event()
    names = Names({NAME: [["127.0.0.1"]]})

    def wait_if_silent(host: str) -> None:
        if host.startswith("silent"):
            gate.wait(20)

    names.before = wait_if_silent
    async with receiver() as endpoint, poster(names=names, lookup_seconds=2) as sender:
        silent = [to("https://silent.example.com/") for _ in range(40)]
        waiting = asyncio.gather(*(sender.post(post) for post in silent))
        attempt = await sender.post(to(endpoint.url(host=NAME)))
        was_first = not waiting.done()
        hung = await waiting
    gate.set()

    assert attempt.outcome is AttemptOutcome.SUCCEEDED
    assert was_first
    assert {(one.outcome, one.error) for one in hung} == {
        (AttemptOutcome.TIMED_OUT, "The host name was not resolved in time.")
    }


async def test_endpoints_that_hang_delay_no_other() -> None:
    async with (
        receiver(hangs) as hanging,
        receiver() as endpoint,
        poster(connections=60) as sender,
    ):
        stuck = asyncio.gather(*(sender.post(to(hanging.url())) for _ in range(50)))
        attempts: list[Attempt] = [await sender.post(to(endpoint.url())) for _ in range(10)]
        were_first = not stuck.done()
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)

    assert all(attempt.outcome is AttemptOutcome.SUCCEEDED for attempt in attempts)
    assert were_first


async def test_no_more_connections_are_kept_than_the_limit() -> None:
    hosts = {f"hooks-{number}.example.com": [["127.0.0.1"]] for number in range(100)}
    async with receiver() as endpoint, poster(names=Names(dict(hosts)), connections=10) as sender:
        for host in hosts:
            await sender.post(to(endpoint.url(host=host)))
        kept = len(_established(endpoint.port))

    assert endpoint.connections == 100
    assert kept <= 10


async def test_a_post_that_is_cancelled_leaves_no_connection() -> None:
    async with receiver(hangs) as endpoint, poster() as sender:
        posting = asyncio.create_task(sender.post(to(endpoint.url())))
        await eventually("it arrived", _is_there(lambda: bool(endpoint.requests)))
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        await asyncio.wait_for(_until_gone(endpoint.port), 10 * pace())

    assert posting.cancelled()


async def test_an_endpoint_that_closes_kept_connections_costs_no_attempt() -> None:
    answer = writes(OK)

    async def answers_and_closes(request: Received, writer: asyncio.StreamWriter) -> None:
        await answer(request, writer)
        writer.close()

    async with receiver(answers_and_closes) as endpoint, poster() as sender:
        attempts = []
        for _ in range(5):
            attempts.append(await sender.post(to(endpoint.url())))
            await asyncio.wait_for(_until_gone(endpoint.port), 10 * pace())

    assert [attempt.outcome for attempt in attempts] == [AttemptOutcome.SUCCEEDED] * 5


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_a_post_on_a_kept_connection_that_ends_without_an_answer_is_sent_again_at_once(
    how: str,
) -> None:
    async def ends_at_the_second(_: Received, writer: asyncio.StreamWriter) -> None:
        if len(endpoint.requests) == 2:
            getattr(writer.transport, how)()
        else:
            writer.write(OK)

    async with receiver(ends_at_the_second) as endpoint, poster() as sender:
        attempts = [await sender.post(to(endpoint.url())) for _ in range(3)]

    assert [attempt.outcome for attempt in attempts] == [AttemptOutcome.SUCCEEDED] * 3
    assert len(endpoint.requests) == 4


async def test_a_post_is_not_sent_again_once_an_answer_has_begun() -> None:
    async def breaks_off_at_the_second(_: Received, writer: asyncio.StreamWriter) -> None:
        if len(endpoint.requests) == 1:
            writer.write(OK)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart")
            writer.close()

    async with receiver(breaks_off_at_the_second) as endpoint, poster() as sender:
        _, broken = [await sender.post(to(endpoint.url())) for _ in range(2)]

    assert (broken.outcome, broken.response_status) == (AttemptOutcome.UNREACHABLE, 200)
    assert len(endpoint.requests) == 2


async def test_a_post_is_sent_again_once_at_most() -> None:
    async def answers_the_first(_: Received, writer: asyncio.StreamWriter) -> None:
        if len(endpoint.requests) == 1:
            writer.write(OK)
        else:
            writer.transport.abort()

    async with receiver(answers_the_first) as endpoint, poster() as sender:
        _, broken = [await sender.post(to(endpoint.url())) for _ in range(2)]

    assert broken.outcome is AttemptOutcome.UNREACHABLE
    assert broken.error == "The connection broke before an answer came."
    assert (len(endpoint.requests), endpoint.connections) == (3, 2)


async def test_a_post_that_is_sent_again_has_no_more_time_than_another() -> None:
    async def slow(_: Received, writer: asyncio.StreamWriter) -> None:
        match len(endpoint.requests):
            case 1:
                writer.write(OK)
            case 2:
                await asyncio.sleep(0.75 * patience.total)
                writer.transport.abort()
            case _:
                await asyncio.Event().wait()

    patience = Timeouts(connect=2, total=2)
    async with receiver(slow) as endpoint, poster(timeouts=patience) as sender:
        _, late = [await sender.post(to(endpoint.url())) for _ in range(2)]

    assert len(endpoint.requests) == 3
    assert late.outcome is AttemptOutcome.TIMED_OUT
    assert late.duration_ms < 3000 * pace()


def _is_there(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return condition()

    return check


async def test_a_post_that_found_no_thread_of_its_tenant_for_its_name_was_not_tried() -> None:
    gate = threading.Event()
    names = Names({NAME: [["127.0.0.1"]], "silent.example.com": [["127.0.0.1"]]})

    def wait_if_silent(host: str) -> None:
        if host != NAME:
            gate.wait(20)

    names.before = wait_if_silent
    lookups = Lookups(seconds=1, thread_seconds=0.2, at_once=4, getaddrinfo=names)
    async with (
        receiver() as endpoint,
        open_poster(
            CallbackPolicy(Allowance.parse(HERE)),
            connections=4,
            lookups=lookups,
            clock=lambda: datetime.now(UTC),
        ) as sender,
    ):
        hung, unlucky, of_another = await asyncio.gather(
            sender.post(to("https://silent.example.com/")),
            sender.post(to(endpoint.url(host=NAME))),
            sender.post(to(endpoint.url(host=NAME), tenant="other")),
        )
        gate.set()

    assert hung.outcome is AttemptOutcome.TIMED_OUT
    assert unlucky.outcome is AttemptOutcome.NOT_TRIED
    assert unlucky.error == "The host name could not be looked up yet."
    assert of_another.outcome is AttemptOutcome.SUCCEEDED
    assert len(endpoint.requests) == 1


async def test_a_post_for_which_this_process_may_open_no_file_was_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    names = Names({NAME: [["127.0.0.1"]]})
    async with receiver() as endpoint, poster(names=names) as sender:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", exhausted)
            dialled = await sender.post(to(endpoint.url(host=NAME)))
        names.before = exhausted
        looked_up = await sender.post(to(endpoint.url(host=NAME)))
        names.before = lambda host: None
        sent = await sender.post(to(endpoint.url(host=NAME)))

    assert (dialled.outcome, dialled.error) == (
        AttemptOutcome.NOT_TRIED,
        "No connection could be opened yet.",
    )
    assert looked_up.outcome is AttemptOutcome.NOT_TRIED
    assert sent.outcome is AttemptOutcome.SUCCEEDED


async def test_a_post_for_whose_name_no_thread_starts_was_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausted(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    async with poster(names=Names({NAME: [["127.0.0.1"]]})) as sender:
        attempt = await sender.post(to(f"https://{NAME}/"))

    assert attempt.outcome is AttemptOutcome.NOT_TRIED


async def test_what_nobody_foresaw_is_a_failed_attempt_and_no_more() -> None:
    def stumble(host: str) -> None:
        raise RuntimeError("secret of ours")

    names = Names({NAME: [["127.0.0.1"]]})
    names.before = stumble
    async with poster(names=names) as sender:
        attempt = await sender.post(to(f"https://{NAME}/"))

    assert (attempt.outcome, attempt.error) == (AttemptOutcome.UNREACHABLE, "It could not be sent.")


def test_a_post_shows_neither_its_body_nor_its_signature() -> None:
    post = to(f"https://{NAME}/", b"the body")

    assert "the body" not in repr(post)
    assert post.headers["webhook-signature"] not in repr(post)
