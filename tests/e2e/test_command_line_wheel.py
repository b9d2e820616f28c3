"""The command line as operators and callers install it: a wheel, without a checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deploy.local.environment import ROOT, TOOLS
from tests.support.client_packages import new_customer, run
from tests.support.live import Live

UV = TOOLS / "uv" / "bin" / "uv"


async def installed(folder: Path) -> str:
    """The command, installed by `uv tool install` of the wheel."""
    await run(str(UV), "build", "--wheel", "-q", "-o", str(folder), str(ROOT), folder=folder)
    (wheel,) = folder.glob("*.whl")
    install = (str(UV), "tool", "install", "-q", "--python", sys.executable, str(wheel))
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    await run(*install, folder=folder, **places)
    return str(folder / "bin" / "bankside")


@pytest.mark.skipif(not UV.exists(), reason="no uv in .tools: `make environment` makes it")
async def test_the_wheel_brings_a_command_that_needs_no_checkout(
    live: Live, tmp_path: Path
) -> None:
    bankside = await installed(tmp_path)
    gateway = live.stack.services["gateway"].settings

    async with new_customer(live) as customer:
        status = await run(bankside, "status", "--json", folder=tmp_path, **customer.settings)
        call = (bankside, "call", "GET", "/customer/accounts", "--json")
        called = await run(*call, folder=tmp_path, **customer.settings)
        examined = await run(bankside, "doctor", "gateway", folder=tmp_path, **gateway)
        completed = await run(bankside, "completion", "bash", folder=tmp_path)

    assert json.loads(status)["family"] == "customer"
    assert json.loads(called)["status"] == 200
    assert "Nothing to do for gateway." in examined
    assert "bankside" in completed
