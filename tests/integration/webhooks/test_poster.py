"""What the poster makes of answers."""

from __future__ import annotations

import asyncio
import gzip
from datetime import UTC, datetime, timedelta

import pytest

from services.webhook_dispatcher.adapters.callback_urls import NOT_PUBLIC
from services.webhook_dispatcher.adapters.poster import MAX_ANSWER_BYTES
from services.webhook_dispatcher.ports import AttemptOutcome
from tests.integration.webhooks.sending import BODY, NAME, SHORT, poster, to
from tests.support.pace import pace
from tests.support.receivers import (
    Answer,
    Authority,
    hangs,
    receiver,
    repeats,
    replies,
    resets,
    self_signed,
    writes,
)

STUCK_SECONDS = 10.0
"""Much longer than the timeouts of `SHORT`."""
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, AttemptOutcome.SUCCEEDED),
        (201, AttemptOutcome.SUCCEEDED),
        (204, AttemptOutcome.SUCCEEDED),
        (299, AttemptOutcome.SUCCEEDED),
        (301, AttemptOutcome.REFUSED),
        (304, AttemptOutcome.REFUSED),
        (308, AttemptOutcome.REFUSED),
        (400, AttemptOutcome.REFUSED),
        (404, AttemptOutcome.REFUSED),
        (410, AttemptOutcome.GONE),
        (429, AttemptOutcome.REFUSED),
        (500, AttemptOutcome.REFUSED),
        (503, AttemptOutcome.REFUSED),
        (599, AttemptOutcome.REFUSED),
        (600, AttemptOutcome.REFUSED),
    ],
)
async def test_the_outcome_follows_the_http_status(status: int, outcome: AttemptOutcome) -> None:
    async with receiver(replies(status)) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.response_status) == (outcome, status)
    assert len(endpoint.requests) == 1


async def test_the_request_is_what_was_signed_and_nothing_of_the_senders_own() -> None:
    async with receiver() as endpoint, poster() as sender:
        await sender.post(to(endpoint.url("/a/../b?x=%7e&y=[1]")))

    (request,) = endpoint.requests
    assert (request.method, request.target) == ("POST", "/a/../b?x=%7e&y=[1]")
    assert request.body == BODY
    assert request.headers == {
        "host": f"127.0.0.1:{endpoint.port}",
        "user-agent": "Bankside-Webhooks/1",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": str(len(BODY)),
        "webhook-id": "evt_1",
        "webhook-timestamp": "1760000000",
        "webhook-signature": "v1,c2lnbmF0dXJl",
    }


async def test_an_answer_is_kept_with_its_time() -> None:
    async with receiver(replies(422, b"no such hook")) as endpoint, poster(clock=lambda: NOW) as s:
        attempt = await s.post(to(endpoint.url()))

    assert attempt.attempted_at == NOW
    assert 0 <= attempt.duration_ms < 5_000
    assert (attempt.error, attempt.response_body) == (None, "no such hook")


async def test_cookies_are_not_kept() -> None:
    answer = replies(200, headers={"Set-Cookie": "session=1; Path=/"})
    async with receiver(answer) as endpoint, poster() as sender:
        await sender.post(to(endpoint.url()))
        await sender.post(to(endpoint.url()))

    assert all("cookie" not in request.headers for request in endpoint.requests)


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (429, "120", 120),
        (503, "Sun, 01 Mar 2026 12:01:00 GMT", 60),
        (429, "39600", 36_000),
        (503, "Sun, 01 Mar 2026 23:00:00 GMT", 36_000),
        (429, "soon", None),
        (503, None, None),
        (500, "120", None),
        (200, "120", None),
    ],
)
async def test_retry_after_counts_where_it_has_a_meaning_up_to_ten_hours(
    status: int, value: str | None, seconds: int | None
) -> None:
    answer = replies(status, headers={} if value is None else {"Retry-After": value})
    async with receiver(answer) as endpoint, poster(clock=lambda: NOW) as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert attempt.retry_after == (None if seconds is None else NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"", ""),
        ("fünf €".encode(), "fünf €"),
        (b"\xff\xfe\x80ok", "���ok"),
        (b"a\x00b\x1b[c\x7f\t\r\n", "a�b�[c\x7f\t\r\n"),
        (b"\x01" * MAX_ANSWER_BYTES, "�" * (MAX_ANSWER_BYTES // 3)),
        (b"x" * MAX_ANSWER_BYTES, "x" * MAX_ANSWER_BYTES),
        (b"x" * (MAX_ANSWER_BYTES + 1), "x" * MAX_ANSWER_BYTES),
        (b"\xff" * MAX_ANSWER_BYTES, "�" * (MAX_ANSWER_BYTES // 3)),
        ("é".encode("utf-16") * 9000, None),
    ],
)
async def test_what_is_kept_of_a_body_is_text_that_can_be_stored(
    body: bytes, kept: str | None
) -> None:
    async with receiver(replies(200, body)) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert attempt.outcome is AttemptOutcome.SUCCEEDED
    assert attempt.response_body is not None
    assert kept is None or attempt.response_body == kept
    assert "\0" not in attempt.response_body
    assert len(attempt.response_body.encode()) <= MAX_ANSWER_BYTES


async def test_a_compressed_answer_is_not_expanded() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    answer = replies(200, bomb, {"Content-Encoding": "gzip"})
    async with receiver(answer) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert attempt.outcome is AttemptOutcome.SUCCEEDED
    assert attempt.response_body is not None
    assert len(attempt.response_body) <= MAX_ANSWER_BYTES


async def test_an_endless_answer_is_cut_off_and_its_status_counts() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    async with receiver(repeats(head, b"x" * 65536)) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))
        again = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, again.outcome) == (AttemptOutcome.SUCCEEDED, AttemptOutcome.SUCCEEDED)
    assert attempt.response_body == "x" * MAX_ANSWER_BYTES
    assert attempt.duration_ms < 5_000
    assert endpoint.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        hangs,
        repeats(b"HTTP/1.1 200 ", b"O", 0.05),
        repeats(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05),
        repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.1),
    ],
    ids=["silence", "trickled status line", "trickled headers", "interim responses"],
)
async def test_no_answer_is_a_timeout(answer: Answer) -> None:
    async with receiver(answer) as endpoint, poster(timeouts=SHORT) as sender:
        async with asyncio.timeout(STUCK_SECONDS * pace()):
            attempt = await sender.post(to(endpoint.url()))

    assert attempt.outcome is AttemptOutcome.TIMED_OUT
    assert (attempt.response_status, attempt.response_body) == (None, None)
    assert attempt.error == "No whole answer came within 0.5 s."


@pytest.mark.parametrize("status", [200, 410, 500])
async def test_a_trickled_answer_is_a_timeout_with_what_came_of_it(status: int) -> None:
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: 1000\r\n\r\n".encode()
    answer = repeats(head, b"x", 0.05)
    async with receiver(answer) as endpoint, poster(timeouts=SHORT) as sender:
        async with asyncio.timeout(STUCK_SECONDS * pace()):
            attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.response_status) == (AttemptOutcome.TIMED_OUT, status)
    assert attempt.response_body is not None
    assert set(attempt.response_body) == {"x"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (resets, "The connection broke before an answer came."),
        (
            writes(b"SSH-2.0-OpenSSH_9.2\r\n"),
            "The answer is not HTTP, or its headers are too long.",
        ),
        (
            writes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"),
            "The answer is not HTTP, or its headers are too long.",
        ),
        (
            writes(b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 1000 + b"\r\n"),
            "The answer is not HTTP, or its headers are too long.",
        ),
        (
            writes(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"),
            "The answer is not HTTP, or its headers are too long.",
        ),
    ],
)
async def test_what_is_no_answer_says_so(answer: Answer, error: str) -> None:
    async with receiver(answer) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == error
    assert len(endpoint.requests) == 1


STRAY = {
    "204 with a body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", 204, ""),
    "204 with chunks": (
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        204,
        "",
    ),
    "304 with a body": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", 304, ""),
    "a length too small": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay", 200, "ok"),
    "410 and a length too small": (b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\ngone", 410, ""),
    "after an interim answer": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nok",
        204,
        "",
    ),
    "lines that end with LF": (b"HTTP/1.1 200 OK\nContent-Length: 0\n\nokay", 200, ""),
    "a second answer": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" * 2, 200, "ok"),
}


@pytest.mark.parametrize(("answer", "status", "body"), STRAY.values(), ids=STRAY.keys())
async def test_an_answer_counts_also_with_bytes_after_its_end_which_end_the_connection(
    answer: bytes, status: int, body: str
) -> None:
    async with receiver(writes(answer)) as endpoint, poster() as sender:
        attempts = [await sender.post(to(endpoint.url())) for _ in range(2)]

    assert [one.response_status for one in attempts] == [status] * 2
    assert [one.response_body for one in attempts] == [body] * 2
    assert {one.outcome for one in attempts}.isdisjoint(
        {AttemptOutcome.UNREACHABLE, AttemptOutcome.TIMED_OUT}
    )
    assert endpoint.connections == 2


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", CHUNKED + b"4\r\npart\r\n"],
)
async def test_an_answer_that_breaks_off_is_no_success(start: bytes) -> None:
    async def breaks_off(request, writer) -> None:  # type: ignore[no-untyped-def]
        writer.write(start)
        await writer.drain()
        writer.close()

    async with receiver(breaks_off) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.response_status) == (AttemptOutcome.UNREACHABLE, 200)
    assert attempt.error == "The connection broke within the answer."


async def test_a_refused_connection_is_unreachable() -> None:
    async with receiver() as gone:
        pass
    async with poster() as sender:
        attempt = await sender.post(to(gone.url()))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == "The connection was refused."


async def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    async with poster() as sender:
        attempt = await sender.post(to("https://nowhere.example.com/"))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == NOT_PUBLIC


async def test_a_certificate_for_the_name_is_accepted_and_the_name_is_told() -> None:
    authority = Authority()
    tls = authority.serving(NAME)
    asked: list[str | None] = []
    tls.sni_callback = lambda _, name, __: asked.append(name)
    async with (
        receiver(tls=tls) as endpoint,
        poster(ssl_context=authority.trusting()) as sender,
    ):
        attempt = await sender.post(to(endpoint.url(host=NAME)))

    assert attempt.outcome is AttemptOutcome.SUCCEEDED
    assert asked == [NAME]
    assert endpoint.requests[0].headers["host"] == f"{NAME}:{endpoint.port}"


async def test_a_self_signed_certificate_fails() -> None:
    async with receiver(tls=self_signed(NAME)) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url(host=NAME)))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == "The certificate is not valid: self-signed certificate."
    assert endpoint.requests == []


async def test_a_certificate_of_an_unknown_authority_fails() -> None:
    async with receiver(tls=Authority().serving(NAME)) as endpoint, poster() as sender:
        attempt = await sender.post(to(endpoint.url(host=NAME)))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == "The certificate is not valid: unable to get local issuer certificate."


async def test_an_expired_certificate_fails() -> None:
    authority = Authority()
    async with (
        receiver(tls=authority.serving(NAME, expired=True)) as endpoint,
        poster(ssl_context=authority.trusting()) as sender,
    ):
        attempt = await sender.post(to(endpoint.url(host=NAME)))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == "The certificate is not valid: certificate has expired."
    assert endpoint.requests == []


async def test_a_certificate_for_another_host_fails() -> None:
    authority = Authority()
    async with (
        receiver(tls=authority.serving("other.example.com")) as endpoint,
        poster(ssl_context=authority.trusting()) as sender,
    ):
        attempt = await sender.post(to(endpoint.url(host=NAME)))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error is not None
    assert attempt.error.startswith("The certificate is not valid: Hostname mismatch")
    assert endpoint.requests == []


async def test_a_server_that_speaks_no_tls_fails() -> None:
    async def greets(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greets, "127.0.0.1", 0)
    async with server, poster() as sender:
        attempt = await sender.post(to(f"https://{NAME}:{server.sockets[0].getsockname()[1]}/"))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert attempt.error == "No TLS session could be agreed on."


async def test_a_tls_session_that_never_begins_is_a_timeout() -> None:
    async with receiver(hangs) as endpoint, poster(timeouts=SHORT) as sender:
        async with asyncio.timeout(STUCK_SECONDS * pace()):
            attempt = await sender.post(to(f"https://{NAME}:{endpoint.port}/"))

    assert attempt.outcome is AttemptOutcome.TIMED_OUT
    assert attempt.error == "There was no connection within 0.3 s."
