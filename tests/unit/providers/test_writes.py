"""One send under a key, and asking about one, over HTTP."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from uuid import uuid4

import aiohttp
import msgspec
import pytest

from libs.contracts.exact_json import decode
from libs.providers.circuit import Circuit
from libs.providers.outcomes import (
    Absent,
    Accepted,
    Finding,
    NotSent,
    Outcome,
    Reason,
    Refused,
    Unknown,
)
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sandbox.keyed_write import KeyedWrite
from libs.providers.sessions import open_session
from libs.providers.writing import Capabilities
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

KEY = uuid4()
ASKED = f"GET /bank/operations/{KEY}"


class Opened(msgspec.Struct, frozen=True):
    id: str


def write(client: ProviderClient) -> KeyedWrite[Opened]:
    return KeyedWrite(
        client,
        Capabilities(None, 60.0),
        "open",
        "POST",
        "/a",
        {"amount": Decimal("0.10")},
        Opened,
        {"already_linked": Reason.ALREADY_LINKED},
    )


async def send(client: ProviderClient, seconds: float = 5.0) -> Outcome[Opened]:
    return await write(client).send(KEY, soon(seconds))


async def find(client: ProviderClient) -> Finding[Opened]:
    return await write(client).find(KEY, soon())


async def test_a_write_is_sent_once_under_its_key(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(200, '{"id": "acc_1", "more": 1}')]

    outcome = await send(client)

    assert outcome == Accepted(Opened("acc_1"))
    [(method, path, body, headers)] = provider.seen
    assert (method, path, decode(body)) == ("POST", "/bank/a", {"amount": Decimal("0.10")})
    assert headers["Idempotency-Key"] == str(KEY)


@pytest.mark.parametrize(
    "answer",
    [
        says(500, "{}"),
        drops,
        hangs,
        says(200, "half an ans"),
        says(200, '{"other": 1}'),
        says(302, "{}"),
        says(404, "<html>"),
        *(refuses(status, "not_now") for status in (401, 403, 408, 425, 429)),
        refuses(409, "idempotency_key_reused"),
        refuses(409, "duplicate_transaction"),
    ],
)
async def test_what_may_have_had_its_effect_is_unknown_and_not_sent_again(
    provider: Provider, client: ProviderClient, answer: object
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    outcome = await send(client)

    assert isinstance(outcome, Unknown)
    assert outcome.sent
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [("already_linked", Reason.ALREADY_LINKED), ("other", Reason.PROVIDER_REFUSED)],
)
async def test_a_definite_no_is_a_refusal_with_a_reason_of_ours(
    provider: Provider, client: ProviderClient, code: str, reason: Reason
) -> None:
    provider.answers = [refuses(409, code)]

    assert await send(client) == Refused(reason, code, "No, said the bank.")


async def test_without_time_nothing_is_sent(provider: Provider, client: ProviderClient) -> None:
    outcome = await send(client, seconds=-1)

    assert isinstance(outcome, NotSent)
    assert provider.seen == []


async def test_a_refused_connection_certainly_sent_nothing() -> None:
    [port] = free_ports(1)
    async with open_session(1) as session:
        client = ProviderClient("bank", f"http://127.0.0.1:{port}", "token", session)

        outcome = await send(client)

    assert isinstance(outcome, NotSent)


async def test_a_write_is_found_with_the_answer_that_it_got(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(200, '{"operation": "open", "status": 200, "body": {"id": "acc_1"}}')]

    assert await find(client) == Accepted(Opened("acc_1"))
    assert provider.requests == [ASKED]


async def test_an_answer_that_is_kept_and_not_understood_needs_an_operator(
    provider: Provider, client: ProviderClient
) -> None:
    """Asking again would bring the same."""
    provider.answers = [says(200, '{"operation": "open", "status": 200, "body": {"other": 1}}')]

    found = await find(client)

    assert isinstance(found, Unknown)
    assert found.needs_operator


async def test_a_refusal_that_is_kept_is_found(provider: Provider, client: ProviderClient) -> None:
    body = '{"error": {"code": "insufficient_funds", "message": "No."}}'
    provider.answers = [says(200, f'{{"operation": "open", "status": 409, "body": {body}}}')]

    assert await find(client) == Refused(Reason.PROVIDER_REFUSED, "insufficient_funds", "No.")


async def test_a_key_that_the_provider_does_not_know_is_absent(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [refuses(404, "unknown_key")]

    assert await find(client) == Absent()


@pytest.mark.parametrize(
    "answer",
    [
        refuses(404, "not_found"),
        says(500, "{}"),
        says(200, "{}"),
        says(200, '{"operation": "open", "status": 200, "body": {}}'),
        refuses(401, "no"),
        refuses(403, "no"),
    ],
)
async def test_an_unclear_answer_finds_nothing_out(
    provider: Provider, client: ProviderClient, answer: object
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    outcome = await find(client)

    assert isinstance(outcome, Unknown)
    assert not any(request.startswith("POST") for request in provider.requests)


async def test_a_timeout_is_not_the_providers_fault_when_our_event_loop_was_late(
    provider: Provider, session: aiohttp.ClientSession
) -> None:
    provider.answers += [hangs]
    circuit = Circuit(failures_to_open=1)
    client = ProviderClient(
        "bank", provider.url, "token", session, timeout_seconds=0.5, circuit=circuit
    )

    async def arrived() -> bool:
        return bool(provider.seen)

    sending = asyncio.create_task(send(client))
    await eventually("the request arrives", arrived)
    time.sleep(1)  # noqa: ASYNC251 - blocks the event loop for longer than the request may take
    outcome = await sending

    assert outcome == Unknown("timed_out")
    assert not circuit.is_shown_open
