"""The clients for callers as they install them: a wheel in an empty environment does what its README shows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from deploy.local.environment import ROOT, TOOLS
from tests.support.live import Live
from tests.support.pace import pace
from tests.support.receivers import Received, Receiver, receiver
from tests.support.waiting import eventually

UV = TOOLS / "uv" / "bin" / "uv"
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("BANKSIDE_", "PYTHON", "VIRTUAL_ENV"))
}
CALLBACK = "https://example.com/webhooks"
PYTHON_CLIENT = ROOT / "libs" / "python_client"
PYTHON_END = """
import json

bankside.test_customer_subscription(made.data.subscription_id)
print(json.dumps({"secret": secret, "transaction_id": sent.data.transaction_id}))
"""
PYTHON_RECEIVE = """
import json, sys

given = json.load(sys.stdin)
print(receive(given["body"].encode(), given["headers"], given["secret"]))
print(receive(given["body"].encode() + b" ", given["headers"], given["secret"]))
"""


@dataclass(frozen=True)
class Customer:
    """A customer with funds, as the programs of the READMEs find it in their environment."""

    settings: dict[str, str]
    endpoint: Receiver

    async def delivery(self, secret: str) -> str:
        """The delivery of the subscription's test, as the programs read it."""

        async def came() -> Received | None:
            requests = [r for r in self.endpoint.requests if b"webhook_subscription.test" in r.body]
            return requests[0] if requests else None

        request = await eventually("the test event is delivered", came)
        given = {"body": request.body.decode(), "headers": dict(request.headers), "secret": secret}
        return json.dumps(given)


@asynccontextmanager
async def new_customer(live: Live) -> AsyncIterator[Customer]:
    onboarded = await live.onboarded()
    business = onboarded["business"]
    await live.bank.deposit(business["account_id"], Decimal("1000.00"))
    key = await live.deployment.customer_key(business["customer_id"])
    async with receiver() as endpoint:
        settings = {
            "BANKSIDE_BASE_URL": live.stack.base_url,
            "BANKSIDE_SUBSCRIPTION_KEY": key.subscription_key,
            "BANKSIDE_SECRET": key.secret,
        }
        yield Customer(settings, endpoint)
        subscriptions = "/customer/webhooks/subscriptions"
        api = live.api(key)
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
    return re.findall(rf"```{language}\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)


async def empty_environment_with_the_wheel(folder: Path) -> str:
    """The interpreter of an environment that has the wheel and what it needs."""
    uv, python = str(UV), str(folder / "environment" / "bin" / "python")
    await run(uv, "build", "--wheel", "-q", "-o", str(folder), str(PYTHON_CLIENT), folder=folder)
    (wheel,) = folder.glob("*.whl")
    await run(uv, "venv", "-q", "--python", sys.executable, "environment", folder=folder)
    await run(uv, "pip", "install", "-q", "--python", python, str(wheel), folder=folder)
    return python


@pytest.mark.skipif(not UV.exists(), reason="no uv in .tools: `make environment` makes it")
async def test_the_wheel_does_what_its_readme_shows(live: Live, tmp_path: Path) -> None:
    python = await empty_environment_with_the_wheel(tmp_path)
    shown = blocks(PYTHON_CLIENT / "README.md", "python")
    (receiving,) = (block for block in shown if "def receive" in block)

    async with new_customer(live) as customer:
        program = "\n".join(shown).replace(CALLBACK, customer.endpoint.url()) + PYTHON_END
        said = await run(python, "-c", program, folder=tmp_path, **customer.settings)
        result = json.loads(said.splitlines()[-1])
        delivery = await customer.delivery(result["secret"])
        received = await run(
            python, "-c", receiving + PYTHON_RECEIVE, folder=tmp_path, given=delivery
        )

    assert f"Wire submitted {result['transaction_id']}" in said
    assert "insufficient_funds" in said
    assert received.splitlines() == ["webhook_subscription.test", "200", "400"]
