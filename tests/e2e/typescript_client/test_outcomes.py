"""What the client tells of answers, and of a write of which none came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from libs.contracts.exact_json import encode
from tests.e2e.typescript_client.running import NOWHERE, Run, needs_node
from tests.support.certificates import Authority, behind_tls
from tests.unit.client.answering import DROP, Gateway, gateway, problem, success

pytestmark = needs_node


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
    (error,) = await play(NOWHERE, script, thrown=thrown)

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


def plain(status: int, body: Any) -> Callable[[], web.Response]:
    """JSON that is neither an envelope nor a problem."""
    content = encode(body)
    return lambda: web.Response(status=status, body=content, content_type="application/json")
