"""The Python client as callers install it: a wheel in an empty environment does what its README shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deploy.local.environment import ROOT, TOOLS
from tests.support.client_packages import CALLBACK, blocks, new_customer, run
from tests.support.live import Live

UV = TOOLS / "uv" / "bin" / "uv"
CLIENT = ROOT / "libs" / "python_client"
END = """
import json

bankside.test_customer_subscription(made.data.subscription_id)
print(json.dumps({"secret": secret, "transaction_id": sent.data.transaction_id}))
"""
RECEIVE = """
import json, sys

given = json.load(sys.stdin)
print(receive(given["body"].encode(), given["headers"], given["secret"]))
print(receive(given["body"].encode() + b" ", given["headers"], given["secret"]))
"""


async def empty_environment_with_the_wheel(folder: Path) -> str:
    """The interpreter of an environment that has the wheel and what it needs."""
    uv, python = str(UV), str(folder / "environment" / "bin" / "python")
    await run(uv, "build", "--wheel", "-q", "-o", str(folder), str(CLIENT), folder=folder)
    (wheel,) = folder.glob("*.whl")
    await run(uv, "venv", "-q", "--python", sys.executable, "environment", folder=folder)
    await run(uv, "pip", "install", "-q", "--python", python, str(wheel), folder=folder)
    return python


@pytest.mark.skipif(not UV.exists(), reason="no uv in .tools: `make environment` makes it")
async def test_the_wheel_does_what_its_readme_shows(live: Live, tmp_path: Path) -> None:
    python = await empty_environment_with_the_wheel(tmp_path)
    shown = blocks(CLIENT / "README.md", "python")
    (receiving,) = (block for block in shown if "def receive" in block)

    async with new_customer(live) as customer:
        program = "\n".join(shown).replace(CALLBACK, customer.endpoint.url()) + END
        said = await run(python, "-c", program, folder=tmp_path, **customer.settings)
        result = json.loads(said.splitlines()[-1])
        delivery = await customer.delivery(result["secret"])
        received = await run(python, "-c", receiving + RECEIVE, folder=tmp_path, given=delivery)

    assert f"Wire submitted {result['transaction_id']}" in said
    assert "insufficient_funds" in said
    assert received.splitlines() == ["webhook_subscription.test", "200", "400"]
