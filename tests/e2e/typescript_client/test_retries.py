"""What the client sends again, when, and under which key."""

from __future__ import annotations

import pytest

from tests.e2e.typescript_client.running import NOWHERE, Run, needs_node
from tests.unit.client.answering import DROP, gateway, problem, success

SENT = b'{"amount":9999999999.99,"external_account_id":"e","purpose":"Caf\xc3\xa9","sending_account_id":"a"}'

pytestmark = needs_node


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
    [_, [first, second]] = await play(NOWHERE, script, asked=asked)

    assert second - first > 140, "milliseconds: 200, less the jitter of a quarter"


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
