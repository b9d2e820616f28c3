from __future__ import annotations

from decimal import Decimal

import pytest

from libs.contracts.exact_json import decode
from libs.providers.errors import ProviderNotReached, ProviderRefusal, ProviderUnknown
from libs.providers.http import ProviderClient
from libs.providers.session import open_session
from tests.unit.providers.conftest import (
    Provider,
    drops,
    hangs,
    refuses,
    says,
    soon,
    unused_port,
)


async def send(client: ProviderClient, *, resumed: bool = False) -> object:
    body = {"amount": Decimal("0.10")}
    return await client.write(
        "open", "POST", "/a", body, idempotency_key="k 1", deadline=soon(), resumed=resumed
    )


async def test_a_write_is_sent_once_under_its_key(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(200, '{"id": "acc_1"}')]

    answer = await send(client)

    assert answer == {"id": "acc_1"}
    [(method, path, body, headers)] = provider.seen
    assert (method, path, decode(body)) == ("POST", "/bank/a", {"amount": Decimal("0.10")})
    assert headers["Idempotency-Key"] == "k 1"


@pytest.mark.parametrize(
    "answer",
    [says(500, "{}"), drops, hangs, says(200, "half an ans"), says(302, "{}"), says(404, "<html>")],
)
async def test_what_may_have_had_its_effect_is_unknown_and_not_sent_again(
    provider: Provider, client: ProviderClient, answer: object
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    with pytest.raises(ProviderUnknown):
        await send(client)

    assert len(provider.seen) == 1


async def test_a_definite_no_is_a_refusal(provider: Provider, client: ProviderClient) -> None:
    provider.answers = [refuses(409, "already_linked")]

    with pytest.raises(ProviderRefusal) as refusal:
        await send(client)

    assert (refusal.value.status, refusal.value.code) == (409, "already_linked")


@pytest.mark.parametrize("status", [401, 429])
async def test_being_turned_away_is_no_refusal_of_what_was_asked(
    provider: Provider, client: ProviderClient, status: int
) -> None:
    provider.answers = [refuses(status, "not_now")]

    with pytest.raises(ProviderNotReached):
        await send(client)


async def test_without_time_nothing_is_sent(provider: Provider, client: ProviderClient) -> None:
    with pytest.raises(ProviderNotReached):
        await client.write("open", "POST", "/a", {}, idempotency_key="k", deadline=soon(-1))

    assert provider.seen == []


async def test_a_refused_connection_certainly_sent_nothing_unless_an_earlier_send_may_have() -> (
    None
):
    async with open_session(1) as session:
        client = ProviderClient("bank", f"http://127.0.0.1:{unused_port()}", "token", session)

        with pytest.raises(ProviderNotReached):
            await send(client)
        with pytest.raises(ProviderUnknown):
            await send(client, resumed=True)


async def test_a_resumed_write_asks_first_and_takes_the_earlier_answer(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [says(200, '{"operation": "open", "status": 200, "body": {"id": "acc_1"}}')]

    answer = await send(client, resumed=True)

    assert answer == {"id": "acc_1"}
    assert provider.requests == ["GET /bank/operations/k%201"]


async def test_a_resumed_write_takes_the_earlier_refusal(
    provider: Provider, client: ProviderClient
) -> None:
    earlier = (
        '{"operation": "open", "status": 422, "body": {"error": {"code": "no", "message": ""}}}'
    )
    provider.answers = [says(200, earlier)]

    with pytest.raises(ProviderRefusal) as refusal:
        await send(client, resumed=True)

    assert (refusal.value.status, refusal.value.code) == (422, "no")
    assert provider.requests == ["GET /bank/operations/k%201"]


async def test_a_resumed_write_is_sent_when_the_provider_does_not_know_its_key(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [refuses(404, "unknown_key"), says(200, '{"id": "acc_1"}')]

    answer = await send(client, resumed=True)

    assert answer == {"id": "acc_1"}
    assert provider.requests == ["GET /bank/operations/k%201", "POST /bank/a"]


@pytest.mark.parametrize(
    "answer", [refuses(404, "not_found"), says(500, "{}"), says(200, "{}"), refuses(401, "no")]
)
async def test_a_resumed_write_is_not_sent_on_an_unclear_answer(
    provider: Provider, client: ProviderClient, answer: object
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    with pytest.raises(ProviderUnknown):
        await send(client, resumed=True)

    assert not any(request.startswith("POST") for request in provider.requests)


async def test_an_earlier_write_is_asked_about_and_not_sent(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [
        says(200, '{"operation": "open", "status": 200, "body": {"id": "acc_1"}}'),
        refuses(404, "unknown_key"),
    ]

    known = await client.earlier("k 1", deadline=soon())
    unknown = await client.earlier("k 2", deadline=soon())

    assert (known, unknown) == ((True, {"id": "acc_1"}), (False, None))
    assert [method for method, *_ in provider.seen] == ["GET", "GET"]


async def test_an_earlier_write_that_was_refused_is_a_refusal(
    provider: Provider, client: ProviderClient
) -> None:
    body = '{"error": {"code": "insufficient_funds", "message": "No."}}'
    provider.answers = [says(200, f'{{"operation": "open", "status": 409, "body": {body}}}')]

    with pytest.raises(ProviderRefusal, match="409 insufficient_funds"):
        await client.earlier("k 1", deadline=soon())


async def test_a_provider_that_cannot_be_asked_tells_nothing(
    provider: Provider, client: ProviderClient
) -> None:
    provider.answers = [refuses(403, "refused")]

    with pytest.raises(ProviderUnknown):
        await client.earlier("k 1", deadline=soon())
