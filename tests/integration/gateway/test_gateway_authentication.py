"""Who may pass: interface §1, to the letter, at a gateway of two processes."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from libs.contracts.principal import Family
from services.gateway import repository
from services.gateway.credentials import secret_context
from tests.integration.gateway.desk import Desk, raw_request, running_gateway, until
from tests.support.api import Answer, Key, canonical_string, sign, signed_headers
from tests.support.infrastructure import Environment

TARGET = "/partner/reseller/accounts/acct_1?x=%20y"
UNKNOWN = Key("sub_" + "A" * 24, "nobody's secret")
ResultT = TypeVar("ResultT")
PASSED = 422
"""What a verified request to TARGET is answered: its query parameter does not exist."""


def headers_of(key: Key, **changes: str) -> dict[str, str]:
    """Signed headers with parts of them changed before signing: timestamp, nonce, secret."""
    timestamp = changes.get("timestamp", str(int(time.time())))
    nonce = changes.get("nonce", uuid.uuid4().hex)
    canonical = canonical_string((timestamp, nonce, key.subscription_key, "GET", TARGET), b"")
    return {
        "X-API-SUBSCRIPTION-KEY": key.subscription_key,
        "X-API-TIMESTAMP": timestamp,
        "X-API-NONCE": nonce,
        "X-API-SIGNATURE": changes.get("signature")
        or sign(changes.get("secret", key.secret), canonical),
    }


def off_by(seconds: int) -> str:
    return str(int(time.time()) + seconds)


async def test_a_signed_request_passes(desk: Desk) -> None:
    key = await desk.key()

    answer = await desk.send(headers_of(key), TARGET)

    assert answer.status == PASSED


@pytest.mark.parametrize("absent", [1, 2, 3, 4])
async def test_missing_headers_are_named(desk: Desk, absent: int) -> None:
    headers = headers_of(await desk.key())
    gone = list(headers)[:absent]
    for name in gone:
        del headers[name]

    answer = await desk.send(headers, TARGET)

    assert (answer.status, answer.code) == (401, "missing_credentials")
    assert sorted(answer.body["headers"]) == sorted(gone)


FORMS = {
    "X-API-SUBSCRIPTION-KEY": "sub_ and 22 to 255 letters",
    "X-API-TIMESTAMP": "Unix time in whole seconds",
    "X-API-NONCE": "16 to 128 of",
    "X-API-SIGNATURE": "64 hex digits",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-API-SUBSCRIPTION-KEY", "sub_" + "A" * 21),
        ("X-API-SUBSCRIPTION-KEY", "sub_" + "A" * 256),
        ("X-API-SUBSCRIPTION-KEY", "key_" + "A" * 22),
        ("X-API-SUBSCRIPTION-KEY", "sub_" + "A" * 21 + "-"),
        ("X-API-TIMESTAMP", "soon"),
        ("X-API-TIMESTAMP", "1767225600.0"),
        ("X-API-TIMESTAMP", "-1767225600"),
        ("X-API-TIMESTAMP", "1e9"),
        ("X-API-TIMESTAMP", ""),
        ("X-API-NONCE", "a" * 15),
        ("X-API-NONCE", "a" * 129),
        ("X-API-NONCE", "a" * 16 + "."),
        ("X-API-NONCE", "with a space, no"),
        ("X-API-SIGNATURE", "A" * 64),
        ("X-API-SIGNATURE", "a" * 63),
        ("X-API-SIGNATURE", "g" * 64),
    ],
)
async def test_a_header_of_another_form_is_malformed(desk: Desk, name: str, value: str) -> None:
    headers = headers_of(await desk.key()) | {name: value}

    answer = await desk.send(headers, TARGET)

    assert (answer.status, answer.code) == (401, "malformed_credentials")
    assert answer.body["headers"] == [name]
    assert f"{name} is {FORMS[name]}" in answer.body["detail"]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("X-API-SUBSCRIPTION-KEY", "sub_" + "A" * 100, "unknown_subscription_key"),
        ("X-API-TIMESTAMP", "1767225600000000000", "timestamp_out_of_window"),
    ],
)
async def test_what_has_the_form_is_told_what_is_wrong_with_it(
    desk: Desk, name: str, value: str, code: str
) -> None:
    headers = headers_of(await desk.key()) | {name: value}

    answer = await desk.send(headers, TARGET)

    assert (answer.status, answer.code) == (401, code)


@pytest.mark.parametrize("digit", ["\u0661", "\uff11"])
async def test_digits_that_are_not_ascii_are_malformed(desk: Desk, digit: str) -> None:
    headers = headers_of(await desk.key())
    headers["X-API-TIMESTAMP"] = (digit * 10).encode().decode("latin-1")

    answer = await desk.raw(raw_request("GET", TARGET, headers))

    assert (answer.status, answer.code) == (401, "malformed_credentials")


@pytest.mark.parametrize(
    "name", ["X-API-SUBSCRIPTION-KEY", "X-API-TIMESTAMP", "X-API-NONCE", "X-API-SIGNATURE"]
)
async def test_an_authentication_header_sent_twice_is_malformed_even_when_equal(
    desk: Desk, name: str
) -> None:
    headers = headers_of(await desk.key())
    twice = [*headers.items(), (name.lower(), headers[name])]

    answer = await desk.raw(raw_request("GET", TARGET, twice))

    assert (answer.status, answer.code) == (401, "malformed_credentials")


async def test_an_unknown_key_is_told_so_whatever_else_is_wrong(desk: Desk) -> None:
    answer = await desk.send(headers_of(UNKNOWN, timestamp=off_by(-9999)), TARGET)

    assert (answer.status, answer.code) == (401, "unknown_subscription_key")


async def test_an_expired_key_is_unknown(desk: Desk) -> None:
    key = await desk.key(expires_at=datetime.now(UTC) - timedelta(seconds=1))

    answer = await desk.send(headers_of(key), TARGET)

    assert (answer.status, answer.code) == (401, "unknown_subscription_key")


async def test_a_key_that_expires_while_it_is_used_stops(desk: Desk) -> None:
    async def used_key() -> Key | None:
        """None when the machine was too slow to use it in time."""
        key = await desk.key(expires_at=datetime.now(UTC) + timedelta(seconds=2))
        return key if (await desk.send(headers_of(key), TARGET)).status == PASSED else None

    key = await until(used_key)

    assert await until(lambda: is_refused(desk, key, "unknown_subscription_key"), 8)


@pytest.mark.parametrize("seconds", [-310, 310])
async def test_a_timestamp_outside_the_window_is_told_the_servers_time(
    desk: Desk, seconds: int
) -> None:
    headers = headers_of(await desk.key(), timestamp=off_by(seconds), signature="0" * 64)

    before = int(time.time())
    answer = await desk.send(headers, TARGET)

    assert (answer.status, answer.code) == (401, "timestamp_out_of_window")
    assert before <= answer.body["server_time"] <= time.time()


@pytest.mark.parametrize("seconds", [-290, 290])
async def test_a_timestamp_inside_the_window_passes_once(desk: Desk, seconds: int) -> None:
    headers = headers_of(await desk.key(), timestamp=off_by(seconds))

    first = await desk.send(headers, TARGET)
    second = await desk.send(headers, TARGET)

    assert first.status == PASSED
    assert (second.status, second.code) == (401, "nonce_reused")


async def test_a_wrong_signature_is_told_what_was_signed(desk: Desk) -> None:
    key = await desk.key()
    headers = headers_of(key, secret="another")

    answer = await desk.send(headers, TARGET)

    parts = (
        headers["X-API-TIMESTAMP"],
        headers["X-API-NONCE"],
        key.subscription_key,
        "GET",
        TARGET,
    )
    assert (answer.status, answer.code) == (401, "invalid_signature")
    assert answer.body["canonical_string"] == canonical_string(parts, b"")


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/partner/reseller/customers", b"{}"),
        ("GET", "/partner/reseller/customers?page=2", b""),
        ("GET", "/partner/reseller/customers?page=1&", b""),
        ("GET", "/partner/reseller/customers/%61", b""),
    ],
)
async def test_a_signature_is_for_one_method_target_and_body(
    desk: Desk, method: str, target: str, body: bytes
) -> None:
    key = await desk.key()
    headers = signed_headers(key, "GET", "/partner/reseller/customers?page=1", b"")

    answer = await desk.api().send(method, target, body, headers)

    assert (answer.status, answer.code) == (401, "invalid_signature")


async def test_a_refused_signature_burns_no_nonce(desk: Desk) -> None:
    key = await desk.key()
    nonce, timestamp = uuid.uuid4().hex, off_by(0)
    forged = headers_of(key, nonce=nonce, timestamp=timestamp, secret="another")

    refused = await desk.send(forged, TARGET)
    genuine = await desk.send(headers_of(key, nonce=nonce, timestamp=timestamp), TARGET)

    assert refused.code == "invalid_signature"
    assert genuine.status == PASSED


async def test_a_replayed_request_is_refused_before_what_else_is_wrong_with_it(desk: Desk) -> None:
    key = await desk.key(family=Family.CUSTOMER)  # the wrong family for TARGET
    headers = headers_of(key)

    first = await desk.send(headers, TARGET)
    second = await desk.send(headers, TARGET)

    assert (first.status, first.code) == (403, "wrong_route_family")
    assert (second.status, second.code) == (401, "nonce_reused")


async def test_one_nonce_serves_two_keys(desk: Desk) -> None:
    nonce, timestamp = uuid.uuid4().hex, off_by(0)

    answers = [
        await desk.send(headers_of(await desk.key(), nonce=nonce, timestamp=timestamp), TARGET)
        for _ in range(2)
    ]

    assert [answer.status for answer in answers] == [PASSED, PASSED]


async def test_a_new_key_works_at_once_even_where_it_was_asked_for_in_vain(desk: Desk) -> None:
    key = await desk.key()
    await desk.execute(
        "DELETE FROM credentials WHERE subscription_key = :k", k=key.subscription_key
    )
    before = await in_both_processes(desk, lambda: desk.send(headers_of(key), TARGET))
    sealed = desk.keyring.seal(key.secret, secret_context(key.subscription_key))
    await desk.execute(
        "INSERT INTO credentials (subscription_key, tenant, family, scopes, secret, reads_per_minute,"
        " writes_per_minute, wires_per_minute) VALUES (:k, :t, 'partner', '{accounts:read}', :s, 999, 99, 9)",
        k=key.subscription_key,
        t=key.tenant,
        s=sealed,
    )

    after = await in_both_processes(desk, lambda: desk.send(headers_of(key), TARGET))

    assert {answer.code for answer in before} == {"unknown_subscription_key"}
    assert {answer.status for answer in after} == {PASSED}


async def test_a_revoked_key_stops_soon_in_every_process(desk: Desk) -> None:
    key = await desk.key()
    await in_both_processes(desk, lambda: desk.send(headers_of(key), TARGET))

    async with desk.database.transaction() as connection:
        await repository.revoke(connection, key.subscription_key)

    assert await until(lambda: is_refused(desk, key, "unknown_subscription_key"), 3)


async def is_refused(desk: Desk, key: Key, code: str, **more: str) -> bool:
    """By every process with this code."""
    if (await desk.send(headers_of(key) | more, TARGET)).code != code:
        return False
    answers = await in_both_processes(desk, lambda: desk.send(headers_of(key) | more, TARGET))
    return {answer.code for answer in answers} == {code}


async def test_both_secrets_of_a_rotated_key_sign_until_the_overlap_ends(desk: Desk) -> None:
    key = await desk.key()
    new = Key(key.subscription_key, "the new secret", key.tenant)
    sealed = desk.keyring.seal(new.secret, secret_context(key.subscription_key))
    await in_both_processes(desk, lambda: desk.send(headers_of(key), TARGET))

    async with desk.database.transaction() as connection:
        await repository.rotate(connection, key.subscription_key, sealed, overlap_hours=1)
    at_once = await in_both_processes(desk, lambda: desk.send(headers_of(new), TARGET))
    overlapping = await in_both_processes(desk, lambda: desk.send(headers_of(key), TARGET))

    assert {answer.status for answer in at_once} == {PASSED}
    assert {answer.status for answer in overlapping} == {PASSED}
    # An hour later.
    await desk.execute(
        "UPDATE credentials SET previous_secret_expires_at = previous_secret_expires_at"
        " - interval '1 hour' WHERE subscription_key = :k",
        k=key.subscription_key,
    )
    assert await until(lambda: is_refused(desk, key, "invalid_signature"), 8)
    assert (await desk.send(headers_of(new), TARGET)).status == PASSED


async def test_a_key_whose_secret_cannot_be_opened_fails_alone(desk: Desk) -> None:
    broken = await desk.key()
    await desk.execute(
        "UPDATE credentials SET secret = 's1.gone.AAAA' WHERE subscription_key = :k",
        k=broken.subscription_key,
    )
    good = [await desk.key() for _ in range(10)]

    keys = (*good, broken, *good, broken, *good)
    answers = await asyncio.gather(
        *(desk.raw(raw_request("GET", TARGET, headers_of(key))) for key in keys)
    )

    by_key = list(zip(keys, answers, strict=True))
    assert {answer.status for key, answer in by_key if key is broken} == {500}
    assert {answer.status for key, answer in by_key if key is not broken} == {PASSED}


async def test_production_keeps_what_it_signed_to_itself_and_has_keys_that_cannot_send_twice(
    gateway_environment: Environment, tmp_path: Path
) -> None:
    async with running_gateway(
        gateway_environment,
        tmp_path,
        BANKSIDE_GATEWAY_PROFILE="production",
        BANKSIDE_GATEWAY_TRUSTED_PROXIES="10.0.0.0/8",
    ) as desk:
        key = await desk.key()

        answer = await desk.send(headers_of(key, secret="another"), TARGET)
        admin = await desk.operator()
        wanted = {"family": "partner", "tenant": "acme", "reason": "a test"}
        made = (await admin.post("/operator/keys", wanted)).data
        shown = (await admin.get(f"/operator/keys/{made['subscription_key']}")).data

    assert (answer.status, answer.code) == (401, "invalid_signature")
    assert "canonical_string" not in answer.body
    assert shown["requires_idempotency_key"] is True


async def test_an_address_that_keeps_failing_is_told_so_by_every_process_and_may_sign(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    async with running_gateway(
        fresh_environment,
        tmp_path,
        BANKSIDE_GATEWAY_PROCESSES="2",
        BANKSIDE_GATEWAY_FAILURES_PER_MINUTE="20",
        BANKSIDE_GATEWAY_TRUSTED_PROXIES="127.0.0.0/8",
    ) as desk:
        key = await desk.key()

        async def fail(sender: dict[str, str]) -> tuple[list[Answer], Answer, list[Answer]]:
            """The answers to failures within the limit, to one beyond it, and to signed requests."""
            within = await asyncio.gather(
                *(desk.send(headers_of(UNKNOWN) | sender, TARGET) for _ in range(20))
            )
            await until(lambda: is_refused(desk, UNKNOWN, "rate_limited", **sender), 5)
            beyond = await desk.send(headers_of(UNKNOWN) | sender, TARGET)
            signed = await in_both_processes(
                desk, lambda: desk.send(headers_of(key) | sender, TARGET)
            )
            return within, beyond, signed

        within, beyond, signed = await in_one_minute(fail)

    assert {answer.status for answer in within} == {401}
    assert beyond.status == 429
    assert 0 < int(beyond.headers["Retry-After"]) <= 60
    assert {answer.status for answer in signed} == {PASSED}


async def test_what_is_signed_is_told_why_it_is_refused_also_at_an_address_that_keeps_failing(
    gateway_environment: Environment, tmp_path: Path
) -> None:
    async with running_gateway(
        gateway_environment,
        tmp_path,
        BANKSIDE_GATEWAY_FAILURES_PER_MINUTE="1",
        BANKSIDE_GATEWAY_TRUSTED_PROXIES="127.0.0.0/8",
    ) as desk:

        async def fail(sender: dict[str, str]) -> list[Answer]:
            """The answers to a request, to two failures, to a copy of the request, and to one that is not allowed."""
            copied = headers_of(await desk.key()) | sender
            elsewhere = headers_of(await desk.key(allowed_networks=["192.0.2.0/24"])) | sender
            unknown = [headers_of(UNKNOWN) | sender for _ in range(2)]
            return [
                await desk.send(headers, TARGET)
                for headers in (copied, *unknown, copied, elsewhere)
            ]

        first, _, failing, copy, not_allowed = await in_one_minute(fail)

    assert (first.status, failing.code) == (PASSED, "rate_limited")
    assert (copy.status, copy.code) == (401, "nonce_reused"), "the first one was admitted"
    assert (not_allowed.status, not_allowed.code) == (403, "address_not_allowed")


async def in_one_minute(attempt: Callable[[dict[str, str]], Awaitable[ResultT]]) -> ResultT:
    """The result of an attempt that began and ended in the same minute, since failures are counted anew in the next.
    Each has a header with an address of its own.
    """
    for number in range(1, 10):
        minute = int(time.time()) // 60
        result = await attempt({"X-Forwarded-For": f"203.0.113.{number}"})
        if int(time.time()) // 60 == minute:
            return result
    raise AssertionError("each attempt took more than a minute")


async def in_both_processes(
    desk: Desk, call: Callable[[], Awaitable[Answer]], calls: int = 20
) -> list[Answer]:
    """So many calls on connections of their own that both processes get some (but once in 500,000 times)."""
    return list(await asyncio.gather(*(call() for _ in range(calls))))
