"""`bankside listen` on the running stack: a developer sees, verified, what happens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.support.api import Key
from tests.support.live import Live
from tests.support.pace import pace
from tests.support.receivers import receiver

SUBSCRIPTIONS = "/webhooks/subscriptions"


@asynccontextmanager
async def listening(
    live: Live, key: Key, *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command once it listens; its standard output has a line of JSON for each delivery."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("bankside")),
        *("listen", "--json", *arguments),
        env=os.environ
        | {
            "BANKSIDE_BASE_URL": live.stack.base_url,
            "BANKSIDE_SUBSCRIPTION_KEY": key.subscription_key,
            "BANKSIDE_SECRET": key.secret,
        },
        cwd=live.stack.folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        said = (await asyncio.wait_for(process.stderr.readline(), 30 * pace())).decode()
        assert said.startswith("Listening for"), said
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def shown(process: asyncio.subprocess.Process) -> Any:
    assert process.stdout is not None
    return json.loads(await asyncio.wait_for(process.stdout.readline(), 30 * pace()))


@pytest.mark.parametrize("family", ["partner", "customer"])
async def test_listen_shows_and_forwards_verified_deliveries_and_leaves_nothing_behind(
    live: Live, family: str
) -> None:
    onboarded = await live.onboarded()
    key, prefix = await live.deployment.key("anvil"), "/partner/reseller"
    if family == "customer":
        customer_id = onboarded["business"]["customer_id"]
        key, prefix = await live.deployment.customer_key(customer_id), "/customer"
    api = live.api(key)

    async with (
        receiver() as local,
        listening(live, key, "--event-type", "webhook_subscription", "--forward", local.url()) as p,
    ):
        (subscription,) = (await api.get(prefix + SUBSCRIPTIONS)).data
        one = f"{prefix}{SUBSCRIPTIONS}/{subscription['subscription_id']}"
        secret = (await api.get(f"{one}/secret")).data["secret"]
        await api.post(f"{one}/test", None)
        delivery = await shown(p)
        p.send_signal(signal.SIGINT)
        await asyncio.wait_for(p.communicate(), 30 * pace())

    assert (delivery["type"], delivery["verified"], delivery["status"]) == (
        "webhook_subscription.test",
        True,
        200,
    )
    (request,) = local.requests
    event = Webhook(secret).verify(request.body, dict(request.headers))
    assert event["id"] == delivery["event_id"] == request.headers["webhook-id"]
    assert p.returncode == 0
    assert (await api.get(prefix + SUBSCRIPTIONS)).data == []
