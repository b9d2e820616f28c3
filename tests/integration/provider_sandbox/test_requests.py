"""What the bank does not take."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.provider_sandbox.bank import Bank


@pytest.mark.parametrize("path", ["/identity/events", "/core/customers/x", "/financial/accounts/x"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}], ids=["none", "wrong"])
async def test_without_the_token_nothing_is_told(
    bank: Bank, path: str, headers: dict[str, str]
) -> None:
    reply = await bank.call("GET", path, headers=headers)

    assert (reply.status, reply.code) == (401, "unauthorized")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"customer_id":"c"}',
        b'{"customer_id":1,"kind":"business","fields":{"ein":"123456789"}}',
        b'{"customer_id":"c","kind":"firm","fields":{"ein":"123456789"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"12345"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"123456789","a":"\\u0000"}}',
        b'{"customer_id":"c","kind":"business","fields":{"ein":"123456789"},"more":1}',
    ],
    ids=str,
)
async def test_what_the_bank_cannot_read_is_malformed(bank: Bank, body: bytes) -> None:
    headers = bank.authorization("POST", "/identity/customers") | {
        "Idempotency-Key": str(uuid.uuid4())
    }

    reply = await bank.call("POST", "/identity/customers", headers=headers, data=body)

    assert (reply.status, reply.code) == (400, "malformed")
    assert "123456789" not in reply.body["error"]["message"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/identity/customers/idn_none", 404, "not_found"),
        ("/core/customers/a%00b", 400, "invalid"),
        ("/financial/accounts/%FF", 404, "not_found"),
        ("/financial/accounts", 400, "invalid"),
        ("/financial/events?limit=501", 400, "invalid"),
        ("/financial/events?after=-1", 400, "invalid"),
        ("/financial/events?page=1", 400, "invalid"),
        ("/financial/external-accounts?customer_id=c&cursor=xyz", 400, "invalid"),
        ("/core/events/1", 404, "not_found"),
    ],
)
async def test_what_is_not_there_or_makes_no_sense_is_said(
    bank: Bank, path: str, status: int, code: str
) -> None:
    reply = await bank.get(path)

    assert (reply.status, reply.code) == (status, code)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Origin": "https://other.example"}, 403, "foreign_origin"),
        ({"Origin": "null"}, 403, "foreign_origin"),
        ({"Origin": "http://[::1"}, 403, "foreign_origin"),
        ({"Host": "rebound.example:8090"}, 403, "foreign_host"),
        ({"Host": "[::1"}, 403, "foreign_host"),
        ({"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        ({"Content-Type": "application/json", "Host": "localhost"}, 422, "invalid"),
        ({"Content-Type": "application/json", "Host": "[::1]:8090"}, 422, "invalid"),
        ({"Content-Type": "application/json", "Host": "provider-sandbox:8090"}, 422, "invalid"),
    ],
)
async def test_pages_of_other_sites_order_nothing(
    bank: Bank, headers: dict[str, str], status: int, code: str
) -> None:
    for method, path in (("PUT", "/faults"), ("POST", "/simulate/deposits")):
        reply = await bank.call(method, path, headers=headers, data=b"{}")

        assert (reply.status, reply.code) == (status, code)


async def test_pages_of_other_sites_read_nothing(bank: Bank) -> None:
    foreign = {"Origin": "https://other.example"}

    reply = await bank.call("GET", "/truth/customers", headers=foreign)

    assert (reply.status, reply.code) == (403, "foreign_origin")
