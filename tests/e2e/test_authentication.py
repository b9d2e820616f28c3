"""Who gets in, by the interface §1, over HTTP. Every form of each header: `tests/integration/gateway`."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from deploy.local.ports import LOOPBACK
from tests.support.api import Answer, Api, Key, canonical_string, sign, signed_headers
from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import application
from tests.support.ports import free_ports
from tests.support.stack import ServiceProcess
from tests.support.waiting import eventually

VECTORS = json.loads((Path(__file__).parents[1] / "contract" / "vectors.json").read_text())
SUBSCRIPTION_KEY, TIMESTAMP = "X-API-SUBSCRIPTION-KEY", "X-API-TIMESTAMP"
NONCE, SIGNATURE = "X-API-NONCE", "X-API-SIGNATURE"


def by_name(vector: Any) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("vector", VECTORS["request_signature"], ids=by_name)
def test_the_caller_of_these_tests_signs_as_the_vectors_do(vector: dict[str, str]) -> None:
    parts = tuple(
        vector[part] for part in ("timestamp", "nonce", "subscription_key", "method", "target")
    )

    canonical = canonical_string(parts, vector["body_utf8"].encode())  # type: ignore[arg-type]

    assert canonical == vector["canonical"]
    assert sign(vector["secret"], canonical) == vector["signature"]


@pytest.mark.parametrize("vector", VECTORS["request_signature"], ids=by_name)
async def test_the_gateway_reads_a_request_as_the_vectors_do(
    live: Live, vector: dict[str, str]
) -> None:
    """With a key that exists: authenticated, whatever the route then says. A wrong signature shows what was signed."""
    key = live.partner.key
    body = vector["body_utf8"].encode()
    target = vector["target"]

    right = await fetch(live, vector["method"], target, body, {})
    wrong = await fetch(live, vector["method"], target, body, {SIGNATURE: "0" * 64})

    assert right.status != 401
    if wrong.status == 401:  # 404 and 405 come first: routes of later versions
        assert wrong.code == "invalid_signature"
        lines = wrong.body["canonical_string"].split("\n")
        assert [*lines[:1], *lines[3:]] == [
            "v1",
            *(key.subscription_key, vector["method"], target),
            vector["canonical"].rpartition("\n")[2],
        ]


async def fetch(
    live: Live, method: str, target: str, body: bytes, changes: dict[str, str]
) -> Answer:
    return await live.partner.call(method, target, body or None, headers=changes)


async def refused(live: Live, headers: dict[str, str]) -> Answer:
    answer = await live.partner.send("GET", ACCOUNTS, b"", headers)
    assert answer.status == 401, answer.body
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.body["request_id"] == answer.headers["X-Request-Id"]
    return answer


async def test_the_order_of_the_checks(live: Live) -> None:
    """Each with everything wrong that comes after it."""
    headers = {SUBSCRIPTION_KEY: "x", TIMESTAMP: "1", NONCE: "short"}
    assert (await refused(live, headers)).code == "missing_credentials"
    headers[SIGNATURE] = "0" * 64
    assert (await refused(live, headers)).code == "malformed_credentials"
    headers |= {SUBSCRIPTION_KEY: "sub_" + "Z" * 22, NONCE: uuid.uuid4().hex}
    assert (await refused(live, headers)).code == "unknown_subscription_key"
    headers[SUBSCRIPTION_KEY] = live.partner.key.subscription_key
    assert (await refused(live, headers)).code == "timestamp_out_of_window"
    headers[TIMESTAMP] = str(int(time.time() * 1000))
    in_milliseconds = await refused(live, headers)
    assert in_milliseconds.code == "timestamp_out_of_window"
    assert "it looks like milliseconds" in in_milliseconds.body["detail"]
    headers[TIMESTAMP] = str(int(time.time()))
    assert (await refused(live, headers)).code == "invalid_signature"
    headers |= signed_headers(live.partner.key, "GET", ACCOUNTS)
    assert (await live.partner.send("GET", ACCOUNTS, b"", headers)).status == 200
    assert (await refused(live, headers)).code == "nonce_reused"


async def test_a_wrong_signature_burns_no_nonce(live: Live) -> None:
    headers = signed_headers(live.partner.key, "GET", ACCOUNTS)

    assert (await refused(live, headers | {SIGNATURE: "0" * 64})).code == "invalid_signature"

    assert (await live.partner.send("GET", ACCOUNTS, b"", headers)).status == 200


@pytest.mark.parametrize("changed", ["body", "query", "method"])
async def test_what_was_signed_is_what_has_to_arrive(live: Live, changed: str) -> None:
    body = b'{"business": {"dba": "Anvils"}}'
    target = f"{CUSTOMERS}/business/{uuid.uuid4()}"
    headers = signed_headers(live.partner.key, "PATCH", target, body)
    headers["Content-Type"] = "application/json"
    match changed:
        case "body":
            body = body.replace(b"Anvils", b"Devils")
        case "query":
            target += "?a=b"
        case _:
            headers |= signed_headers(live.partner.key, "POST", target, body)

    answer = await live.partner.send("PATCH", target, body, headers)

    assert (answer.status, answer.code) == (401, "invalid_signature")


async def test_of_two_identical_requests_on_two_gateways_one_passes(
    live: Live, tmp_path: Path
) -> None:
    first = live.stack.services["gateway"]
    port, operator_port, admin_port = free_ports(3)
    changes = {
        "BANKSIDE_GATEWAY_PORT": str(port),
        "BANKSIDE_GATEWAY_OPERATOR_PORT": str(operator_port),
        "BANKSIDE_GATEWAY_ADMIN_PORT": str(admin_port),
    }
    other = ServiceProcess("services.gateway", first.settings | changes, tmp_path / "gateway.log")
    await other.start()
    try:
        there = Api(live.session, f"http://{LOOPBACK}:{port}", live.interface, live.partner.key)
        for _ in range(10):
            headers = signed_headers(live.partner.key, "GET", ACCOUNTS)
            answers = await asyncio.gather(
                *(api.send("GET", ACCOUNTS, b"", headers) for api in (live.partner, there) * 4)
            )

            codes = sorted(answer.code for answer in answers)
            assert codes == ["200"] + ["nonce_reused"] * 7
    finally:
        await other.stop()


async def test_the_other_family_is_forbidden(live: Live) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]
    customer = await live.of_customer(customer_id)

    as_partner = await live.partner.get("/customer/accounts")
    as_customer = await customer.post(CUSTOMERS, application())

    assert (as_partner.status, as_partner.code) == (403, "wrong_route_family")
    assert (as_customer.status, as_customer.code) == (403, "wrong_route_family")
    assert "takes the key of a customer; this one is that of a partner" in as_partner.body["detail"]
    assert (
        "takes the key of a partner; this one is that of a customer" in as_customer.body["detail"]
    )


async def test_a_key_without_the_scope_is_forbidden(live: Live) -> None:
    reader = await live.of_tenant("anvil", "--scope", "accounts:read")

    read = await reader.get(ACCOUNTS)
    listed = await reader.get(CUSTOMERS)
    written = await reader.post(CUSTOMERS, {})

    assert read.status == 200
    assert (listed.status, listed.code) == (403, "insufficient_scope")
    assert (written.status, written.code) == (403, "insufficient_scope"), "before the body is read"


async def test_a_revoked_key_stops_and_a_rotated_one_has_two_secrets(live: Live) -> None:
    made = await live.stack.command(
        *("keys", "create", "--family", "partner", "--tenant", "fleeting")
    )
    old = Key(made["subscription_key"], made["secret"])
    assert (await live.api(old).get(ACCOUNTS)).status == 200, "a new key works at once"

    rotated = await live.stack.command("keys", "rotate", old.subscription_key)
    new = Key(rotated["subscription_key"], rotated["secret"])

    assert new.subscription_key == old.subscription_key
    await eventually("the new secret works", lambda: works(live.api(new)), 2.5)
    assert (await live.api(old).get(ACCOUNTS)).status == 200

    await live.stack.command("keys", "revoke", old.subscription_key, "--yes")

    await eventually("the key is unknown", lambda: is_unknown(live.api(new)), 2.5)


async def test_scopes_of_a_key_are_added_and_removed(live: Live) -> None:
    made = await live.stack.command(
        *("keys", "create", "--family", "partner", "--tenant", "scoped"),
        *("--scope", "accounts:read"),
    )
    api = live.api(Key(made["subscription_key"], made["secret"]))
    assert (await api.get(ACCOUNTS)).status == 200
    change = ("keys", "scopes", made["subscription_key"])

    async def has(accounts: int, customers: int) -> bool:
        answers = [(await api.get(target)).status for target in (ACCOUNTS, CUSTOMERS)]
        return answers == [accounts, customers]

    added = await live.stack.command(*change, "--add", "customers:read")
    await eventually("both are allowed", lambda: has(200, 200))
    await live.stack.command(*change, "--remove", "accounts:read")
    await eventually("one is allowed", lambda: has(403, 200))
    shown = await live.stack.command(*change)

    assert added["scopes"] == ["accounts:read", "customers:read"]
    assert shown["scopes"] == ["customers:read"]


async def test_addresses_of_a_key_are_added_and_removed(live: Live) -> None:
    made = await live.stack.command(
        *("keys", "create", "--family", "partner", "--tenant", "located"),
        *("--allow", "203.0.113.7", "--expires", "30d"),
    )
    api = live.api(Key(made["subscription_key"], made["secret"]))
    change = ("keys", "allow", made["subscription_key"])
    assert (await api.get(ACCOUNTS)).code == "address_not_allowed"

    added = await live.stack.command(*change, "--add", "127.0.0.0/8")
    await eventually("it is allowed from here", lambda: works(api))
    await live.stack.command(*change, "--remove", "127.0.0.0/8")
    await eventually("it is not allowed from here", lambda: is_elsewhere(api))
    with pytest.raises(AssertionError, match="say so with --anywhere"):
        await live.stack.command(*change, "--remove", "203.0.113.7/32")
    await live.stack.command(*change, "--anywhere")
    await eventually("it is allowed from everywhere", lambda: works(api))

    assert added["allowed_networks"] == ["127.0.0.0/8", "203.0.113.7/32"]
    [row] = await live.stack.command("keys", "list", "--tenant", "located")
    assert row["allowed_networks"] == []
    assert row["expires_at"] is not None


async def is_elsewhere(api: Api) -> bool:
    return (await api.get(ACCOUNTS)).code == "address_not_allowed"


async def works(api: Api) -> bool:
    return (await api.get(ACCOUNTS)).status == 200


async def is_unknown(api: Api) -> bool:
    return (await api.get(ACCOUNTS)).code == "unknown_subscription_key"


async def test_more_writes_than_the_key_may_are_told_when_to_come_again(live: Live) -> None:
    slow = await live.of_tenant("slow", "--writes-per-minute", "2")

    answers = [await slow.post(CUSTOMERS, {}) for _ in range(4)]

    assert [answer.status for answer in answers[:2]] == [422, 422]
    assert answers[-1].code == "rate_limited"
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert answers[0].headers["RateLimit-Limit"] == "2"
    assert (await slow.get(ACCOUNTS)).status == 200, "reads count for themselves"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("PUT", CUSTOMERS, {"GET", "POST"}), ("DELETE", ACCOUNTS, {"GET"})],
)
async def test_a_known_path_says_which_methods_it_takes(
    live: Live, method: str, path: str, allowed: set[str]
) -> None:
    answer = await live.api(None).call(method, path)

    assert (answer.status, answer.code) == (405, "method_not_allowed")
    said = {name.strip() for name in answer.headers["Allow"].split(",")}
    assert allowed <= said <= allowed | {"HEAD", "OPTIONS"}


async def test_an_unknown_path_is_not_found_before_credentials(live: Live) -> None:
    answer = await live.api(None).get("/partner/reseller/nothing")

    assert (answer.status, answer.code) == (404, "not_found")


async def test_the_callers_request_id_comes_back(live: Live) -> None:
    mine = "order-17/a"

    answer = await live.partner.get(ACCOUNTS, **{"X-Request-Id": mine})
    other = await live.partner.get(ACCOUNTS, **{"X-Request-Id": "with a space"})

    assert answer.headers["X-Request-Id"] == mine
    assert uuid.UUID(other.headers["X-Request-Id"]).version == 7
