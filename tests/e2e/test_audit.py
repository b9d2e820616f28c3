"""What callers wrote and what operators did, as `bankside audit` shows it."""

from __future__ import annotations

import json
from typing import Any

from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from tests.support.live import CUSTOMERS, Live
from tests.support.people import application, new_key
from tests.support.stack import Stack
from tests.support.waiting import eventually


async def entries(stack: Stack, service: str) -> list[dict[str, Any]]:
    exported = await stack.command("audit", "export", service)
    return [row["entry"] for row in exported["rows"]]


async def test_a_write_and_the_key_that_signed_it_are_in_the_audit_without_what_is_sensitive(
    live: Live,
) -> None:
    partner, body = await live.of_tenant("audited"), application()
    answer = await partner.call("POST", CUSTOMERS, body, idempotency_key=new_key())
    assert answer.data["status"] == "approved"
    signed_with = partner.key.subscription_key
    written: list[dict[str, Any]] = []

    async def is_written() -> bool:
        written[:] = [
            e for e in await entries(live.stack, "onboarding") if e["actor"] == signed_with
        ]
        return bool(written)

    await eventually("the onboarding is in the audit", is_written)
    keys = [
        entry
        for entry in await entries(live.stack, "gateway")
        if entry.get("subscription_key") == signed_with
    ]

    [entry] = written
    assert (entry["action"], entry["outcome"]) == (ONBOARD_CUSTOMER.name, "ok")
    assert (entry["address"], entry["tenant"]) == ("127.0.0.1", "audited")
    assert entry["request_id"] == answer.headers["X-Request-Id"]
    assert "body_digest" not in entry, "its body has tax numbers"
    assert [entry["action"] for entry in keys] == ["keys.create"]
    assert keys[0]["actor"].startswith("operator:")
    shown = json.dumps([*written, *keys])
    secret = [body["business"]["ein"], partner.key.secret, *(p["tin"] for p in body["persons"])]
    assert not [value for value in secret if value in shown]
    verified = await live.stack.command("audit", "verify")
    assert all(one["whole"] for one in verified["audits"])
