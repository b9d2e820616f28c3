"""Programs that use the packages for callers outside any checkout, and a customer for them."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tests.support.live import Live
from tests.support.pace import pace
from tests.support.receivers import Received, Receiver, receiver
from tests.support.waiting import eventually

OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("BANKSIDE_", "PYTHON", "VIRTUAL_ENV"))
}
CALLBACK = "https://example.com/webhooks"
NODE_FOR_A_FEW_SECONDS = ("node", "--no-opt", "--max-semi-space-size=128")
"""For `tsc`: to optimize its code and to collect garbage often takes a sixth more than it saves by its end."""


@dataclass(frozen=True)
class Customer:
    """A customer with funds, as the programs of the READMEs find it in their environment."""

    settings: dict[str, str]
    endpoint: Receiver

    async def delivery(self, secret: str) -> str:
        """The delivery of the subscription's test, as JSON with the secret."""

        async def came() -> Received | None:
            requests = [r for r in self.endpoint.requests if b"webhook_subscription.test" in r.body]
            return requests[0] if requests else None

        request = await eventually("the test event is delivered", came)
        given = {"body": request.body.decode(), "headers": dict(request.headers), "secret": secret}
        return json.dumps(given)


@asynccontextmanager
async def new_customer(live: Live) -> AsyncIterator[Customer]:
    """Its subscriptions go when the block ends, as its endpoint does."""
    business = (await live.onboarded())["business"]
    await live.bank.deposit(business["account_id"], Decimal("1000.00"))
    key = await live.deployment.customer_key(business["customer_id"])
    settings = {
        "BANKSIDE_BASE_URL": live.stack.base_url,
        "BANKSIDE_SUBSCRIPTION_KEY": key.subscription_key,
        "BANKSIDE_SECRET": key.secret,
    }
    subscriptions, api = "/customer/webhooks/subscriptions", live.api(key)
    async with receiver() as endpoint:
        try:
            yield Customer(settings, endpoint)
        finally:
            for made in (await api.get(subscriptions)).data:
                await api.call("DELETE", f"{subscriptions}/{made['subscription_id']}")


async def run(*command: str, folder: Path, given: str = "", **settings: str) -> str:
    """Standard output of a command that succeeds, and that knows of no checkout."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=OUTSIDE | settings,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60 * pace()):
        output, errors = await process.communicate(given.encode())
    assert process.returncode == 0, errors.decode() + output.decode()
    return output.decode()


def blocks(readme: Path, language: str) -> list[str]:
    """The code of a README in one language."""
    return re.findall(rf"```{language}\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
