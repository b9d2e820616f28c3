"""The command line as operators and callers install it: a wheel, without a checkout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.local.environment import ROOT, TOOLS
from tests.support.client_packages import new_customer, run
from tests.support.live import Live

UV = TOOLS / "uv" / "bin" / "uv"
ONE_AFTER_THE_OTHER = """
import contextlib
import io
import json
import os
import runpy
import sys

command, outside, shown = sys.argv[-1], dict(os.environ), []
for arguments, settings in json.load(sys.stdin):
    sys.argv = [command, *arguments]
    os.environ.clear()
    os.environ.update(outside | settings)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            runpy.run_path(command, run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                sys.exit(f"{arguments} ended with {ended.code}: {output.getvalue()}")
    shown.append(output.getvalue())
print(json.dumps(shown))
"""
"""Commands of one interpreter, which loads what they share once: to start another takes half a second."""


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
        others: list[tuple[tuple[str, ...], Mapping[str, str]]] = [
            (("call", "GET", "/customer/accounts", "--json"), customer.settings),
            (("doctor", "gateway"), gateway),
            (("completion", "bash"), {}),
        ]
        shown = await run(
            *(str(tmp_path / "tools" / "bankside" / "bin" / "python"), "-P"),
            *("-c", ONE_AFTER_THE_OTHER, bankside),
            folder=tmp_path,
            given=json.dumps(others),
        )
        called, examined, completed = json.loads(shown)

    assert json.loads(status)["family"] == "customer"
    assert json.loads(called)["status"] == 200
    assert "Nothing to do for gateway." in examined
    assert "bankside" in completed
