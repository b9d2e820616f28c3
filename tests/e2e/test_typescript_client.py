"""The TypeScript client as callers install it: a package in an empty folder, at prepared answers and at the stack."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from deploy.local.environment import ROOT
from deploy.local.node import PACKAGE, find_typescript
from libs.contracts.exact_json import encode
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.signing.webhook import signature_header
from tests.support.certificates import Authority, behind_tls
from tests.support.client_packages import (
    CALLBACK,
    NODE_FOR_A_FEW_SECONDS,
    OUTSIDE,
    blocks,
    new_customer,
    run,
)
from tests.support.live import Live
from tests.support.pace import pace
from tests.unit.client.answering import DROP, KEY, Gateway, gateway, problem, success

CLIENT = ROOT / "libs" / "typescript_client"
VECTORS = json.loads((ROOT / "tests" / "contract" / "vectors.json").read_text("utf-8"))
OTHER_SECRET = "whsec_YW5vdGhlciBvbmUgb2YgdGhlIHNhbWUgbGVuZ3Ro"
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
SENT = b'{"amount":9999999999.99,"external_account_id":"e","purpose":"Caf\xc3\xa9","sending_account_id":"a"}'
SIGN = """
for (const v of given.vectors.request_signature) {
  const key = { subscriptionKey: v.subscription_key, secret: v.secret };
  const body = new TextEncoder().encode(v.body_utf8);
  const signed = await b.signedHeaders(key, v.method, v.target, body, v.timestamp, v.nonce);
  console.log(signed["X-API-SIGNATURE"] === v.signature);
}
for (const v of given.vectors.webhook_signature) {
  const headers = { "Webhook-Id": v.id, "Webhook-Timestamp": v.timestamp, "Webhook-Signature": v.signature };
  const named = async (work) => { try { return await work; } catch (error) { return error.constructor.name; } };
  const late = { toleranceSeconds: 1e10 };
  const genuine = await named(b.verifyWebhook(v.body_utf8, headers, [given.other, v.secret], late));
  console.log(genuine !== "WebhookSignatureError" && genuine !== "WebhookSecretError");
  for (const refused of [
    () => b.verifyWebhook(v.body_utf8, headers, v.secret),
    () => b.verifyWebhook(v.body_utf8, headers, v.secret, { toleranceSeconds: NaN }),
    () => b.verifyWebhook(v.body_utf8 + " ", headers, v.secret, late),
    () => b.verifyWebhook(v.body_utf8, {}, v.secret, late),
  ]) console.log((await named(refused())) === "WebhookSignatureError");
}
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

pytestmark = pytest.mark.skipif(
    find_typescript() is None,
    reason=f"no Node with its packages: `make test` installs them, `apt-get install {PACKAGE}` Node",
)
Run = Callable[..., Awaitable[list[Any]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
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


@pytest.fixture(scope="module")
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


async def test_it_signs_and_verifies_every_vector(play: Run) -> None:
    checks = await play(
        Gateway("http://127.0.0.1:1", []), SIGN, vectors=VECTORS, other=OTHER_SECRET
    )

    assert checks == [True] * (
        len(VECTORS["request_signature"]) + 5 * len(VECTORS["webhook_signature"])
    )


async def test_a_parsed_body_and_a_missing_secret_are_told_as_the_callers_mistakes(
    play: Run,
) -> None:
    script = """
        for (const body of [undefined, null, {}, { type: "wire.completed" }])
          await show(b.verifyWebhook(body, {}, given.other));
        for (const missing of [undefined, null, [given.other, undefined]])
          await show(b.verifyWebhook("{}", {}, missing));
    """
    errors = await play(Gateway("http://127.0.0.1:1", []), script, other=OTHER_SECRET)

    assert [error["name"] for error in errors] == ["TypeError"] * 7
    parsed, missing = errors[:4], errors[4:]
    assert all("body is the bytes as they came, not" in error["message"] for error in parsed)
    assert [error["message"] for error in missing] == ["a secret is missing"] * 3


async def test_a_delivery_is_not_verified_with_a_key_that_is_empty_or_short(play: Run) -> None:
    keys, timestamp = (b"", b"other"), str(int(time.time()))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": signature_header(keys, "evt_1", timestamp, b"{}"),
    }
    script = """
        for (const secret of ["whsec_", "whsec_b3RoZXI=", ["whsec_", "whsec_b3RoZXI="]])
          await show(b.verifyWebhook("{}", given.headers, secret));
    """
    errors = await play(Gateway("http://127.0.0.1:1", []), script, headers=headers)

    assert [error["name"] for error in errors] == ["WebhookSecretError"] * 3
    assert errors[0]["message"] == "the key of a webhook secret is 16 bytes at least"


async def test_a_malformed_secret_is_told_also_where_an_earlier_one_verifies(play: Run) -> None:
    timestamp = str(int(time.time()))
    key = b64decode(OTHER_SECRET.removeprefix("whsec_"))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": signature_header((key,), "evt_1", timestamp, b"{}"),
    }
    script = """
        await show(b.verifyWebhook("{}", given.headers, [given.other]));
        for (const malformed of ["", "no secret", "whsec_", "whsec_?"])
          await show(b.verifyWebhook("{}", given.headers, [given.other, malformed]));
    """
    event, *errors = await play(
        Gateway("http://127.0.0.1:1", []), script, headers=headers, other=OTHER_SECRET
    )

    assert event == {}
    assert [error.get("name") for error in errors] == ["WebhookSecretError"] * 4


async def test_the_methods_are_the_operations(play: Run) -> None:
    script = "show(Promise.resolve(Object.getOwnPropertyNames(Object.getPrototypeOf(b.Client.prototype))));"
    (names,) = await play(Gateway("http://127.0.0.1:1", []), script)

    assert set(names) == {"constructor", *(row.operation_id for row in PUBLIC_OPERATIONS)}


async def test_a_retry_is_signed_anew_under_the_same_key_and_body(play: Run) -> None:
    unavailable = problem(503, "unavailable", headers={"Retry-After": "0"})
    done = success({"transaction_id": "t1"}, headers={"Idempotent-Replayed": "true"})
    async with gateway(unavailable, DROP, done) as server:
        (answer,) = await play(server, "await show(send());")

    assert (answer["data"]["transaction_id"], answer["replayed"]) == ("t1", True)
    assert [request.signed for request in server.received] == [True] * 3
    assert len({request.headers["X-API-NONCE"] for request in server.received}) == 3
    assert {request.headers["Idempotency-Key"] for request in server.received} == {"invoice-7"}
    assert {request.body for request in server.received} == {SENT}


@pytest.mark.parametrize("asked", ["0", "Sun, 06 Nov 1994 08:49:37 GMT"])
async def test_a_retry_after_that_is_no_time_to_wait_leaves_the_pause_to_the_backoff(
    play: Run, asked: str
) -> None:
    script = """
        const sent = [];
        const fetch = async () => {
          sent.push(performance.now());
          return new Response("", { status: 503, headers: { "Retry-After": given.asked } });
        };
        await show(new b.Client({ ...settings, fetch, attempts: 2 }).listWires());
        await show(Promise.resolve(sent));
    """
    [_, [first, second]] = await play(Gateway("http://127.0.0.1:1", []), script, asked=asked)

    assert second - first > 140, "milliseconds: 200, less the jitter of a quarter"


async def test_a_call_that_is_built_anew_has_the_same_body(play: Run) -> None:
    script = """
        const moved = (value) => Object.fromEntries(Object.entries(value).reverse());
        const person = { id: "p1", ownership_percentage: 25.5, last_name: null, tags: ["b", "a"] };
        class Person { constructor(values) { Object.assign(this, values); } }
        const bare = Object.assign(Object.create(null), moved(person));
        await client.sendWire({ ...wire, persons: [person] });
        await client.sendWire({ persons: [moved(person)], ...moved(wire) });
        await client.sendWire({ persons: [new Person(moved(person))], ...moved(wire) });
        await client.sendWire({ persons: [bare], ...moved(wire) });
    """
    async with gateway(success({})) as server:
        await play(server, script)

    [first, *anew] = server.received
    assert [again.body for again in anew] == [first.body] * 3
    assert json.loads(first.body)["persons"] == [
        {"id": "p1", "ownership_percentage": 25.5, "last_name": None, "tags": ["b", "a"]}
    ]


async def test_a_value_that_json_writes_as_another_one_is_sent_as_that(play: Run) -> None:
    script = """
        await client.onboardCustomer({
          a: [new Number(1.5), new String("b"), new Boolean(false)],
          b: { toJSON: () => ({ z: 1, y: new Date(0) }) },
        });
        await show(client.onboardCustomer({ a: Object(1n) }));
    """
    async with gateway(success({})) as server:
        (refused,) = await play(server, script)

    assert [request.body for request in server.received] == [
        b'{"a":[1.5,"b",false],"b":{"y":"1970-01-01T00:00:00.000Z","z":1}}'
    ]
    assert refused["name"] == "TypeError"


async def test_an_update_of_nothing_has_an_empty_object_for_its_body(play: Run) -> None:
    async with gateway(success({})) as server:
        await play(server, 'await client.setWirePolicy("c1", {}); await client.cancelWire("t1");')

    [update, without_body] = server.received
    assert (update.body, update.headers["Content-Type"]) == (b"{}", "application/json")
    assert (without_body.body, "Content-Type" in without_body.headers) == (b"", False)
    assert update.signed


async def test_settings_that_are_undefined_have_their_defaults(play: Run) -> None:
    nothing = "{ attempts: undefined, patienceSeconds: undefined, timeoutSeconds: undefined, fetch: undefined }"
    unavailable = problem(503, "unavailable", headers={"Retry-After": "0"})
    async with gateway(unavailable, success([])) as server:
        script = f"await show(new b.Client({{ ...settings, ...{nothing} }}).listPartnerAccounts());"
        (answer,) = await play(server, script)

    assert answer["data"] == []
    assert len(server.received) == 2


async def test_an_address_with_a_user_or_a_password_is_refused_at_once(play: Run) -> None:
    script = """
        const baseUrl = settings.baseUrl.replace("//", "//user:password@");
        await show((async () => new b.Client({ ...settings, baseUrl }))());
    """
    (refused,) = await play(Gateway("http://127.0.0.1:1", []), script)

    assert refused["name"] == "TypeError"
    assert "password" in refused["message"]


async def test_a_limit_that_is_no_positive_finite_number_is_refused_at_once(play: Run) -> None:
    script = """
        const wrong = { attempts: 0, timeoutSeconds: 0, patienceSeconds: -1 };
        for (const [name, value] of Object.entries(wrong))
          for (const limit of [value, -0.5, NaN, Infinity, "5"])
            await show((async () => new b.Client({ ...settings, [name]: limit }))());
        new b.Client({ ...settings, attempts: 1, timeoutSeconds: 0.1, patienceSeconds: 0 });
    """
    refused = await play(Gateway("http://127.0.0.1:1", []), script)

    assert [(error["name"], error["message"]) for error in refused] == [
        ("RangeError", message)
        for message in (
            "attempts is no positive finite number.",
            "timeoutSeconds is no positive finite number.",
            "patienceSeconds is negative, or no finite number.",
        )
        for _ in range(5)
    ]


async def test_a_timeout_may_be_any_part_of_a_second_and_longer_than_a_timer(play: Run) -> None:
    script = """
        for (const timeoutSeconds of [2.01, 10 / 3, 1e9])
          await new b.Client({ ...settings, timeoutSeconds, attempts: 1 }).listPartnerAccounts();
    """
    async with gateway(success([])) as server:
        await play(server, script)

    assert len(server.received) == 3


async def test_an_idempotency_key_that_no_header_takes_is_refused_before_anything_is_sent(
    play: Run,
) -> None:
    script = """
        for (const idempotencyKey of given.keys) await show(client.sendWire(wire, { idempotencyKey }));
        await client.sendWire(wire, { idempotencyKey: "Invoice 2047 ~" });
    """
    keys = ["a\nb", "a\n", " a", "a ", "a\tb", "\u00e9", "\x7f"]
    async with gateway(success({})) as server:
        refused = await play(server, script, keys=keys)

    assert [error["name"] for error in refused] == ["TypeError"] * len(keys)
    assert refused[0]["message"].startswith("idempotencyKey takes up to 255 printable ASCII")
    assert [one.headers["Idempotency-Key"] for one in server.received] == ["Invoice 2047 ~"]


async def test_what_is_no_finite_number_is_refused_by_the_name_of_its_field(play: Run) -> None:
    script = """
        await show(client.setWirePolicy("c1", { per_wire_limit: Number("1,000") }));
        await show(client.onboardCustomer({ persons: [{ ownership_percentage: -Infinity }] }));
        await show(client.listWires({ limit: NaN }));
        await show(client.listSettlementCalculations("a1", { source: Infinity }));
    """
    async with gateway(success({})) as server:
        refused = await play(server, script)

    assert [error["name"] for error in refused] == ["TypeError"] * 4
    assert [error["message"] for error in refused] == [
        f"{name} is no finite number."
        for name in ("per_wire_limit", "ownership_percentage", "limit", "source")
    ]
    assert server.received == []


async def test_errors_name_code_what_to_do_and_request(play: Run) -> None:
    value = {"loc": ["body", "amount"], "msg": "Input should be greater than 0", "type": "x"}
    ended = [
        {"loc": ["body", "callback_url"], "msg": "The URL is not https.", "type": "y"},
        {"loc": ["query", "sate"], "msg": "did you mean `state`?", "type": "z"},
    ]
    refused = problem(
        409, "insufficient_funds", transaction_id="t1", headers={"X-Request-Id": "r-1"}
    )
    late = problem(429, "rate_limited", headers={"Retry-After": "3600"})
    answers = (refused, plain(422, {"detail": [value, *ended]}), late, plain(200, ["hello"]))
    async with gateway(*answers) as server:
        conflict, invalid, limited, unreadable = await play(
            server,
            "for (let i = 0; i < 3; i++) await show(send()); await show(client.getOwnWirePolicy());",
        )

    assert (conflict["name"], conflict["key"]) == ("Conflict", "invoice-7")
    assert conflict["message"] == (
        "insufficient_funds: No. Wait for funds or send less; then use a new Idempotency-Key. (request r-1)"
    )
    assert conflict["problem"]["transaction_id"] == "t1"
    assert (invalid["name"], invalid["errors"]) == ("InvalidRequest", [value, *ended])
    assert (
        "body.amount: Input should be greater than 0. body.callback_url: The URL is not https."
        " query.sate: did you mean `state`? "
    ) in invalid["message"]
    assert (limited["name"], limited["code"]) == ("RateLimited", "rate_limited")
    assert (unreadable["name"], unreadable["code"]) == ("ServerError", "unreadable_answer")


async def test_a_422_of_a_proxy_is_an_error_with_the_idempotency_key(play: Run) -> None:
    found = ["no", None, {"loc": "body", "msg": "It is blocked"}, {"reason": "x"}]
    async with gateway(plain(422, {"detail": found}), plain(422, {"detail": ["no"]})) as server:
        some, none = await play(
            server, "await show(client.sendWire(wire)); await show(client.sendWire(wire));"
        )

    assert (some["name"], some["errors"]) == ("InvalidRequest", found)
    assert some["message"].startswith("invalid: It is blocked. ")
    assert none["message"].startswith("invalid: The answer is 422. ")
    sent = [request.headers["Idempotency-Key"] for request in server.received]
    assert [some["key"], none["key"]] == sent


async def test_the_outcome_of_a_write_that_may_have_arrived_is_unknown(play: Run) -> None:
    proxy = plain(503, {"code": "unavailable", "detail": "x"})
    unavailable = problem(503, "unavailable", headers={"Retry-After": "0"})
    late, left = problem(408, "request_timeout"), problem(409, "abandoned")
    script = "for (let i = 0; i < 3; i++) await show(send());"
    async with gateway(DROP, unavailable, unavailable, DROP, late, *[proxy] * 3, left) as server:
        lost, retried, proxied = await play(server, script)
        (abandoned,) = await play(server, "await show(send());")
        ids = [value for request in server.received for value in request.headers.values()]
    (nothing,) = await play(server, "await show(send());")

    assert (abandoned["name"], abandoned["code"]) == ("OutcomeUnknown", "abandoned")
    for error in (lost, retried, proxied):
        assert (error["name"], error["code"]) == ("OutcomeUnknown", "no_answer")
        assert (error["key"], error["id"] in ids) == ("invoice-7", True)
    assert (nothing["name"], nothing["code"]) == ("Unavailable", "no_connection")
    assert "There is no connection to 127.0.0.1: connect ECONNREFUSED" in nothing["message"]


async def test_a_key_that_another_body_was_sent_under_leaves_the_outcome_of_a_write_unknown(
    play: Run,
) -> None:
    async with gateway(problem(409, "idempotency_key_reused", transaction_id="t1")) as server:
        (error,) = await play(server, "await show(send());")

    assert (error["name"], error["code"]) == ("OutcomeUnknown", "idempotency_key_reused")
    assert (error["key"], error["problem"]["transaction_id"]) == ("invoice-7", "t1")


async def test_a_5xx_that_is_not_the_gateways_leaves_the_outcome_of_a_write_unknown(
    play: Run,
) -> None:
    def page(status: int) -> Callable[[], web.Response]:
        return lambda: web.Response(status=status, text="<html>", headers={"Retry-After": "0"})

    done = success({"transaction_id": "t1"})
    accepted = page(202)
    async with gateway(page(520), done, page(429), done, *[page(500)] * 3, accepted) as server:
        after_520, after_429, *unknown = await play(
            server, "for (let i = 0; i < 4; i++) await show(send());"
        )

    assert [each["data"]["transaction_id"] for each in (after_520, after_429)] == ["t1", "t1"]
    for error in unknown:
        told = (error["name"], error["code"], error["key"])
        assert told == ("OutcomeUnknown", "no_answer", "invoice-7")
    assert len(server.received) == 8


@pytest.mark.parametrize(
    ("thrown", "name", "says"),
    [
        ("connect EHOSTUNREACH", "Unavailable", "127.0.0.1: connect EHOSTUNREACH. Check"),
        ("getaddrinfo ENOTFOUND", "Unavailable", "127.0.0.1: getaddrinfo ENOTFOUND. Check"),
        ("connect EPERM, connect ECONNREFUSED", "Unavailable", "127.0.0.1: connect EPERM. Check"),
        ("read EHOSTUNREACH", "OutcomeUnknown", "No answer came."),
        ("write ENETUNREACH", "OutcomeUnknown", "No answer came."),
        ("connect ECONNREFUSED, read ENETUNREACH", "OutcomeUnknown", "No answer came."),
    ],
)
async def test_nothing_was_sent_where_each_error_of_node_is_of_connecting(
    play: Run, thrown: str, name: str, says: str
) -> None:
    script = """
        const [first, ...others] = given.thrown.split(", ").map((message) => {
          const [syscall, code] = message.split(" ");
          return Object.assign(new Error(message), { syscall, code });
        });
        const { code } = first;
        const cause = others.length ? Object.assign(new AggregateError([first, ...others]), { code }) : first;
        const fetch = async () => { throw new TypeError("fetch failed", { cause }); };
        await show(new b.Client({ ...settings, fetch, attempts: 1 }).sendWire(wire, { idempotencyKey: "k" }));
    """
    (error,) = await play(Gateway("http://127.0.0.1:1", []), script, thrown=thrown)

    assert (error["name"], error["key"]) == (name, "k")
    assert says in error["message"]


async def test_a_certificate_that_is_not_trusted_is_told_and_nothing_was_sent(
    play: Run, tmp_path: Path
) -> None:
    identity = Authority(tmp_path).identity()
    async with gateway(success({})) as server, behind_tls(server.base_url, identity) as url:
        (error,) = await play(Gateway(url.replace("http:", "https:"), []), "await show(send());")

    assert (error["name"], error["code"]) == ("Unavailable", "no_connection")
    assert "There is no connection to localhost: unable to verify the first" in error["message"]
    assert server.received == []


async def test_a_write_whose_fresh_nonce_was_used_is_sent_again_under_its_key(play: Run) -> None:
    reused, refused = problem(401, "nonce_reused"), problem(403, "address_not_allowed")
    done = success({"transaction_id": "t1"})
    async with gateway(reused, done, reused, refused, reused) as server:
        script = "for (let i = 0; i < 3; i++) await show(send());"
        answer, *unknown = await play(server, script)

    assert answer["data"]["transaction_id"] == "t1"
    for error in unknown:
        assert (error["name"], error["code"]) == ("OutcomeUnknown", "no_answer")
    assert {request.headers["Idempotency-Key"] for request in server.received} == {"invoice-7"}
    assert len({request.headers["X-API-NONCE"] for request in server.received}) == 7


async def test_an_answer_that_says_nothing_of_a_send_leaves_the_outcome_of_a_write_unknown(
    play: Run,
) -> None:
    fault, unreadable = problem(500, "internal_error"), plain(200, ["hello"])
    page = plain(404, {"not": "a problem"})
    answers = (DROP, fault, DROP, page, DROP, unreadable, unreadable)
    async with gateway(*answers) as server:
        unknown = await play(server, "for (let i = 0; i < 4; i++) await show(send());")

    for error in unknown:
        told = (error["name"], error["code"], error["key"])
        assert told == ("OutcomeUnknown", "no_answer", "invoice-7")
    assert len(server.received) == len(answers)


async def test_an_answer_with_an_unknown_code_is_retried_by_its_status(play: Run) -> None:
    answers = [
        problem(status, "a_code_of_a_later_release", headers={"Retry-After": "0"})
        for status in (429, 503)
    ]
    async with gateway(*answers, success({"transaction_id": "t1"})) as server:
        (answer,) = await play(server, "await show(send());")

    assert answer["data"] == {"transaction_id": "t1"}
    assert {request.headers["Idempotency-Key"] for request in server.received} == {"invoice-7"}


async def test_a_read_whose_retries_fail_ends_with_the_reason_of_the_last_one(play: Run) -> None:
    limited = problem(429, "rate_limited", headers={"Retry-After": "3600"})
    unavailable = problem(503, "unavailable", headers={"Retry-After": "3600"})
    async with gateway(DROP, limited, DROP, unavailable) as server:
        script = 'for (let i = 0; i < 2; i++) await show(client.getWire("t1"));'
        errors = await play(server, script)

    assert [(error["name"], error["code"]) for error in errors] == [
        ("RateLimited", "rate_limited"),
        ("Unavailable", "unavailable"),
    ]


async def test_a_fault_leaves_the_outcome_of_a_write_unknown_and_is_not_tried_again(
    play: Run,
) -> None:
    answers = problem(500, "internal_error"), problem(502, "provider_error")
    async with gateway(*answers, *answers) as server:
        script = """
            for (let i = 0; i < 2; i++) await show(send());
            for (let i = 0; i < 2; i++) await show(client.getWire("t1"));
        """
        errors = await play(server, script)

    assert [(error["name"], error["code"]) for error in errors] == [
        ("OutcomeUnknown", "internal_error"),
        ("OutcomeUnknown", "provider_error"),
        ("ServerError", "internal_error"),
        ("ServerError", "provider_error"),
    ]
    assert [error.get("key") for error in errors] == ["invoice-7", "invoice-7", None, None]
    assert len(server.received) == 4


async def test_iterating_asks_for_the_pages_and_events_that_follow(play: Run) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 2, "page": number}
        return success([{"delivery_id": f"d{number}"}], pagination=pagination)

    events = success([{"id": "evt_1"}]), success([{"id": "evt_2"}]), success([])
    async with gateway(page(1), page(2), *events) as server:
        script = """
            await show(all(client.listCustomerDeliveries("s/1", { limit: 1 })));
            await show(all(client.listPartnerEvents({ after: "evt_0" })));
        """
        deliveries, listed = await play(server, script)

    assert deliveries == [{"delivery_id": "d1"}, {"delivery_id": "d2"}]
    assert listed == [{"id": "evt_1"}, {"id": "evt_2"}]
    assert all(request.signed for request in server.received)
    assert [request.target.rpartition("/")[2] for request in server.received] == [
        "deliveries?limit=1",
        "deliveries?limit=1&page=2",
        "events?after=evt_0",
        "events?after=evt_1",
        "events?after=evt_2",
    ]
    assert "/s%2F1/" in server.received[0].target


async def test_a_list_of_one_state_is_read_to_its_end_before_its_first_item_comes(
    play: Run,
) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 3, "page": number}
        return success([{"transaction_id": f"t{number}"}], pagination=pagination)

    wire = success({"transaction_id": "t"})
    async with gateway(page(1), page(2), page(3), wire) as server:
        script = """
            for await (const wire of await client.listWires({ state: "pending_approval", limit: 1 })) {
              await client.approveWire(wire.transaction_id);
            }
        """
        await play(server, script)

    asked = [request.target.removeprefix("/customer/wires") for request in server.received]
    assert asked == [
        "?state=pending_approval&limit=1",
        "?state=pending_approval&limit=1&page=2",
        "?state=pending_approval&limit=1&page=3",
        "/t1/approve",
        "/t2/approve",
        "/t3/approve",
    ]


async def test_pages_of_deposit_locations_are_of_the_load_of_the_first_one(play: Run) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 2, "offset": number - 1}
        return success([{"location_id": number}], pagination=pagination, as_of_date="2026-03-02")

    async with gateway(page(1), page(2)) as server:
        script = 'await show(all(client.listDepositLocations("a_1", { limit: 1 })));'
        (locations,) = await play(server, script)

    assert locations == [{"location_id": 1}, {"location_id": 2}]
    [first, second] = [request.target.partition("?")[2] for request in server.received]
    assert (first, second) == ("limit=1", "limit=1&load_date=2026-03-02&page=2")


async def test_null_is_left_out_of_headers_and_query_and_kept_in_a_body(play: Run) -> None:
    first = {"limit": 1, "total": 2, "offset": 0}
    page = success([{"location_id": 1}], pagination=first, as_of_date="2026-03-02")
    nothing = success([])
    script = """
        const due = { token_type: "rrc", settlement_date: "2025-01-01" };
        await client.listSettlementCalculations("a1", { ...due, source: null });
        await client.listWires({ state: null, page: null });
        await all(client.listDepositLocations("a1", { limit: 1, page: null, load_date: null }));
        await client.setWirePolicy("c1", { per_wire_limit: null });
    """
    async with gateway(nothing, nothing, page, nothing, success({})) as server:
        await play(server, script)

    [calculations, wires, _, following, policy] = server.received
    assert "source" not in calculations.headers
    assert wires.target == "/customer/wires"
    assert set(following.target.partition("?")[2].split("&")) == {
        "limit=1",
        "page=2",
        "load_date=2026-03-02",
    }
    assert policy.body == b'{"per_wire_limit":null}'


def plain(status: int, body: Any) -> Callable[[], web.Response]:
    """JSON that is neither an envelope nor a problem."""
    content = encode(body)
    return lambda: web.Response(status=status, body=content, content_type="application/json")
