"""The package as callers install it, in an empty folder: its README's program at a stack, its types, its methods."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.local.node import find_typescript
from libs.contracts.table import PUBLIC_OPERATIONS
from tests.e2e.typescript_client.running import CLIENT, NOWHERE, Run, needs_node
from tests.support.client_packages import (
    CALLBACK,
    NODE_FOR_A_FEW_SECONDS,
    blocks,
    new_customer,
    run,
)
from tests.support.live import Live

END = """
await bankside.testCustomerSubscription(made.data.subscription_id);
console.log(JSON.stringify({ secret: webhookSecret, transaction_id: sent.data.transaction_id }));
"""
RECEIVE = """
import { readFileSync } from "node:fs";

const given = JSON.parse(readFileSync(0, "utf8"));
console.log(await receive(given.body, given.headers, given.secret));
console.log(await receive(new TextEncoder().encode(given.body), new Headers(given.headers), [given.secret]));
console.log(await receive(given.body + " ", given.headers, given.secret));
"""
USE = """
declare global { var fetch: (target: string) => Promise<unknown>; }
import { Client, type Event, signedHeaders, verifyWebhook } from "bankside-client";

const key = { subscriptionKey: "a", secret: "b" };
const client = new Client({ ...key, baseUrl: "https://bank.example.com" });
const wire = { sending_account_id: "a", external_account_id: "e", amount: 12.5, purpose: "Invoice" };
export const id: string = (await client.sendWire(wire, { idempotencyKey: "k" })).data.transaction_id;
export const signed = await signedHeaders(key, "GET", "/", new Uint8Array(), "1", "n");
export const event: Event = await verifyWebhook(new Uint8Array(), {}, "whsec_");
"""

pytestmark = needs_node


async def test_the_package_does_what_its_readme_shows(live: Live, installed: Path) -> None:
    shown = blocks(CLIENT / "README.md", "js")
    (receiving,) = (block for block in shown if "function receive" in block)
    node = ("node", "--input-type=module", "-e")

    async with new_customer(live) as customer:
        program = "\n".join(shown).replace(CALLBACK, customer.endpoint.url()) + END
        said = await run(*node, program, folder=installed, **customer.settings)
        result = json.loads(said.splitlines()[-1])
        delivery = await customer.delivery(result["secret"])
        received = await run(*node, receiving + RECEIVE, folder=installed, given=delivery)

    assert f"Wire submitted {result['transaction_id']}" in said
    assert "insufficient_funds" in said
    test = "webhook_subscription.test"
    assert received.splitlines() == [test, "200", test, "200", "400"]


async def test_its_types_need_none_of_a_browser_and_no_new_compiler(installed: Path) -> None:
    programs = find_typescript()
    assert programs is not None
    (installed / "use.mts").write_text(USE)
    options = ("--strict", "--lib", "es2022", "--module", "nodenext", "--skipDefaultLibCheck")

    read = await run(
        *(*NODE_FOR_A_FEW_SECONDS, str(programs / "tsc")),
        *("--noEmit", *options, "--listFiles", "use.mts"),
        folder=installed,
    )

    declared = [Path(line) for line in read.splitlines() if "bankside-client/dist/" in line]
    assert "client.d.ts" in {file.name for file in declared}
    generic = [file.name for file in declared if "Uint8Array<" in file.read_text()]
    assert not generic, "TypeScript before 5.7 takes no argument there"


async def test_the_methods_are_the_operations(play: Run) -> None:
    script = "show(Promise.resolve(Object.getOwnPropertyNames(Object.getPrototypeOf(b.Client.prototype))));"
    (names,) = await play(NOWHERE, script)

    assert set(names) == {"constructor", *(row.operation_id for row in PUBLIC_OPERATIONS)}
