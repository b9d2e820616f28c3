"""Where a key may be used from, when it was used last, and when it expires."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from prometheus_client import REGISTRY

from libs.contracts.operating.pages import Order
from libs.contracts.principal import Scope
from services.gateway import expiry, repository
from tests.integration.gateway.desk import Desk, until
from tests.support.api import Answer, signed_headers

CUSTOMERS = "/partner/reseller/customers"
ELSEWHERE = ("203.0.113.0/24", "2001:db8::/32")


def verdict(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


async def test_a_key_is_refused_from_an_address_that_it_may_not_be_used_from(desk: Desk) -> None:
    api = await desk.new_api(allowed_networks=ELSEWHERE)

    refused = await api.get(CUSTOMERS)
    pretending = await api.get(CUSTOMERS, **{"X-Forwarded-For": "203.0.113.7"})

    assert verdict(refused) == verdict(pretending) == (403, "address_not_allowed")
    assert refused.body["address"] == "127.0.0.1"
    assert "RateLimit-Limit" not in refused.headers


async def test_an_address_that_is_refused_uses_up_nothing_of_the_key(desk: Desk) -> None:
    key = await desk.key(allowed_networks=ELSEWHERE, per_minute=2, scopes=frozenset())
    headers = signed_headers(key, "GET", CUSTOMERS, b"")
    for _ in range(3):
        assert verdict(await desk.send(headers, CUSTOMERS)) == (403, "address_not_allowed")

    await desk.execute(
        "UPDATE credentials SET allowed_networks = '{203.0.113.0/24,127.0.0.0/8}'"
        " WHERE subscription_key = :key",
        key=key.subscription_key,
    )

    async def is_admitted() -> Answer | None:
        answer = await desk.send(headers, CUSTOMERS)
        return None if answer.code == "address_not_allowed" else answer

    admitted = await until(is_admitted, 2.5)
    assert verdict(admitted) == (403, "insufficient_scope")

    async def is_reused() -> bool:  # by both processes, once each knows the new addresses
        answer = await desk.send(headers, CUSTOMERS)
        assert answer.code in {"address_not_allowed", "nonce_reused"}
        return answer.code == "nonce_reused"

    await until(is_reused, 2.5)


async def test_a_scope_of_a_later_release_allows_nothing_and_stays(desk: Desk) -> None:
    """A key may be made, or given a scope, at a gateway of a later release, which runs beside this one."""
    key = await desk.key(scopes=frozenset({Scope.WEBHOOKS_READ}))
    await desk.execute(
        "UPDATE credentials SET scopes = '{cards:read,customers:read}' WHERE subscription_key = :key",
        key=key.subscription_key,
    )
    others = [desk.api(await desk.key(scopes=frozenset())) for _ in range(5)]
    known = "/partner/reseller/webhooks/subscriptions"

    answers = await asyncio.gather(
        desk.api(key).get(known), *(other.get(known) for other in others)
    )
    admin = await desk.operator()
    changed = await admin.post(
        f"/operator/keys/{key.subscription_key}/scopes", {"add": ["accounts:read"], "reason": "x"}
    )

    assert {verdict(answer) for answer in answers} == {(403, "insufficient_scope")}
    assert changed.data["scopes"] == ["accounts:read", "cards:read", "customers:read"]


async def test_a_caller_who_cannot_sign_learns_nothing_of_the_addresses(desk: Desk) -> None:
    key = await desk.key(allowed_networks=ELSEWHERE)
    headers = signed_headers(key, "GET", CUSTOMERS, b"") | {"X-API-SIGNATURE": "0" * 64}

    assert verdict(await desk.send(headers, CUSTOMERS)) == (401, "invalid_signature")


async def test_the_minute_of_the_last_admitted_request_is_recorded(desk: Desk) -> None:
    used = await desk.key(scopes=frozenset())
    refused = await desk.key(allowed_networks=ELSEWHERE)
    began = datetime.now(UTC).replace(second=0, microsecond=0)
    assert (await desk.api(used).get(CUSTOMERS)).code == "insufficient_scope"
    assert (await desk.api(refused).get(CUSTOMERS)).code == "address_not_allowed"

    async def last_used() -> datetime | None:
        [row] = await desk.execute(
            "SELECT last_used_at FROM credentials WHERE subscription_key = :key",
            key=used.subscription_key,
        )
        found: datetime | None = row.last_used_at
        return found

    at = await until(last_used)
    assert began <= at <= datetime.now(UTC)
    assert (at.second, at.microsecond) == (0, 0)
    [row] = await desk.execute(
        "SELECT last_used_at FROM credentials WHERE subscription_key = :key",
        key=refused.subscription_key,
    )
    assert row.last_used_at is None


async def test_keys_that_expire_soon_are_counted_and_listed(desk: Desk) -> None:
    await expiry.measure(desk.database)
    before = REGISTRY.get_sample_value("bankside_gateway_keys_expiring_soon")
    assert before is not None
    keys = {
        days: await desk.key(expires_at=datetime.now(UTC) + timedelta(days=days))
        for days in (1, -1, 13, 15, 1 / 1440)
    }

    await expiry.measure(desk.database)
    async with desk.database.transaction() as connection:
        listed = await repository.list_keys(connection, None, Order.NEWEST, None, 3, expiring=True)

    assert REGISTRY.get_sample_value("bankside_gateway_keys_expiring_soon") == before + 3
    upcoming = REGISTRY.get_sample_value("bankside_gateway_next_key_expires_seconds")
    assert upcoming is not None
    assert 0 < upcoming <= 60
    newest = [keys[days].subscription_key for days in (1 / 1440, 13, 1)]
    assert [key.subscription_key for key in listed] == newest
