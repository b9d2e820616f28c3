"""The package, installed once, and one process of Node for all scripts."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import pytest_asyncio

from deploy.local.node import find_typescript
from tests.e2e.typescript_client.running import CLIENT, Run
from tests.support.client_packages import NODE_FOR_A_FEW_SECONDS, OUTSIDE, run
from tests.support.pace import pace
from tests.unit.client.answering import KEY, Gateway

START = """
"use strict";
const settings = { baseUrl: given.base_url, subscriptionKey: given.subscription_key, secret: given.secret };
const client = new b.Client({ ...settings, attempts: 3 });
const wire = { sending_account_id: "a", external_account_id: "e", amount: 9999999999.99, purpose: "Café" };
const send = () => client.sendWire(wire, { idempotencyKey: "invoice-7" });
const all = async (page) => { const found = []; for await (const item of await page) found.push(item); return found; };
const told = (error) => ({
  name: error.constructor.name, message: error.message, code: error.code, key: error.idempotencyKey,
  id: error.requestId, problem: error.problem, errors: error.errors,
});
const show = async (value) => console.log(JSON.stringify(await value.catch(told)));
"""
SCRIPTS = """
import * as b from "bankside-client";
import { createInterface } from "node:readline";

const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const { script, given } = JSON.parse(line);
  const error = await new AsyncFunction("b", "given", script)(b, given).then(() => null, (error) => error);
  console.log(`END ${error === null ? "" : error.stack}`.replaceAll("\\n", " "));
}
"""
"""Runs a script for each line of its input; what it shows is followed by a line with the error that ended it."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the package, as `npm pack` makes it."""
    programs = find_typescript()
    assert programs is not None
    source, folder = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("program")
    shutil.copytree(CLIENT, source, dirs_exist_ok=True)
    # Its own sources are type-checked, not the declarations that come with TypeScript: half of the processor time.
    await run(*NODE_FOR_A_FEW_SECONDS, str(programs / "tsc"), "--skipLibCheck", folder=source)
    await run("npm", "pack", "--ignore-scripts", "--silent", folder=source)
    (archive,) = source.glob("*.tgz")
    (folder / "package.json").write_text("{}")
    await run("npm", "install", "--offline", "--no-audit", "--no-fund", str(archive), folder=folder)
    return folder


@pytest.fixture(scope="session")
def node(installed: Path) -> Iterator[Popen[str]]:
    """One process for all scripts: to start it takes longer than to run a script."""
    command = ("node", "--input-type=module", "-e", SCRIPTS)
    with Popen(command, cwd=installed, env=OUTSIDE, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture
def play(node: Popen[str]) -> Run:
    """Run lines of JavaScript with a client of a gateway; what they show."""

    def run_script(script: str, given: Any) -> list[Any]:
        assert node.stdin is not None
        assert node.stdout is not None
        node.stdin.write(json.dumps({"script": START + script, "given": given}) + "\n")
        node.stdin.flush()
        said = []
        while not (line := node.stdout.readline()).startswith("END "):
            said.append(json.loads(line))
        assert line == "END \n"
        return said

    async def played(server: Gateway, script: str, **more: Any) -> list[Any]:
        key = {"subscription_key": KEY.subscription_key, "secret": KEY.secret}
        given = {"base_url": server.base_url, **key, **more}
        running = asyncio.create_task(asyncio.to_thread(run_script, script, given))
        await asyncio.wait({running}, timeout=60 * pace())
        if not running.done():
            node.kill()
        return await running

    return played
