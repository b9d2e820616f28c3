"""`bankside` for integrators on the running stack: what the sandbox is told to do can be read as events."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.support.api import Key
from tests.support.command_line import run_bankside
from tests.support.live import Live
from tests.support.waiting import eventually


async def test_what_is_triggered_is_among_the_events(live: Live) -> None:
    onboarded = await live.onboarded()
    business = onboarded["business"]
    customer_id, account_id = business["customer_id"], business["account_id"]
    key = await live.deployment.customer_key(customer_id)

    assert (await _run(live, key, "status"))["family"] == "customer"
    caused = {
        "transaction.created": account_id,
        "ach.created": account_id,
        "deposit_locations.updated": account_id,
        "statement.available": account_id,
        "account.restricted": account_id,
    }
    for event_type, resource_id in caused.items():
        await _run(live, key, "trigger", event_type, resource_id)

    async def seen() -> bool:
        events = await _run(live, key, "events", "tail", "--once")
        return set(caused) <= {event["type"] for event in events[-20:]}

    await eventually("the events are listed", seen, 30)


async def _run(live: Live, key: Key, *arguments: str) -> Any:
    """The document that the command prints with --json."""
    status, out, err = await run_bankside(
        (*arguments, "--json"),
        {
            **os.environ,
            "BANKSIDE_BASE_URL": live.stack.base_url,
            "BANKSIDE_SANDBOX_URL": live.stack.sandbox_url,
            "BANKSIDE_SUBSCRIPTION_KEY": key.subscription_key,
            "BANKSIDE_SECRET": key.secret,
        },
    )
    assert (status, err) == (0, ""), (arguments, err)
    return (
        json.loads(out)
        if arguments[0] != "events"
        else [json.loads(line) for line in out.splitlines()]
    )
