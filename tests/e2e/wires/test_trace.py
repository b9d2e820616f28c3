"""`bankside trace`: the way of a wire from the id in its answer."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

from tests.e2e.wires.hands import Sender
from tests.support.command_line import Finished
from tests.support.people import new_key
from tests.support.receivers import receiver
from tests.support.subscribers import CUSTOMER, subscribed
from tests.support.waiting import eventually

STATES = ("created", "submitted", "completed")


async def test_the_way_of_a_wire_is_shown_from_its_request_to_the_webhooks(sender: Sender) -> None:
    stack = sender.live.stack
    async with (
        receiver() as endpoint,
        subscribed(sender.api, endpoint, "wire", prefix=CUSTOMER, target="/traced") as subscriber,
    ):
        sent = await sender.send("7.77", new_key())
        # A 504 names the wire as well, and the request goes on.
        transaction_id = (sent.body.get("data") or sent.body)["transaction_id"]
        request_id = sent.headers["X-Request-Id"]
        await sender.has_state(transaction_id, "completed")

        async def delivered() -> Any:
            found = await stack.command("trace", request_id)
            kinds = Counter(step["kind"] for step in found["steps"])
            return found if kinds["attempt"] >= len(STATES) else None

        found = await eventually("its events are delivered", delivered)
        subscribed_id = subscriber.subscription_id

    async def shown_by_all() -> str:
        done = await stack.run("trace", request_id)
        assert done.status == 0, done.err
        return done.out

    shown = await eventually("every service has answered", shown_by_all)

    assert (found["unreachable"], found["cut"], found["note"]) == ([], [], None)
    steps = found["steps"]
    assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)
    (accepted,) = (step for step in steps if step["kind"] == "command")
    assert accepted["what"] == "payments.send_wire"
    assert accepted["subscription_key"] == sender.api.key.subscription_key
    assert (accepted["tenant"], accepted["customer_id"]) == (
        sender.api.key.tenant,
        sender.account.customer_id,
    )
    (answered,) = (step for step in steps if step["kind"] == "result")
    assert (answered["state"], answered["response_status"], answered["error"]) == (
        "done",
        200,
        None,
    )
    assert answered["command_id"] == accepted["command_id"]
    states = [step["state"] for step in steps if step["kind"] == "wire"]
    assert states == ["pending_submission", "submitted", "completed"]
    asked = {step["idempotency_key"] for step in steps if step["kind"] == "provider_request"}
    assert asked == {transaction_id}
    events = [step["what"] for step in steps if step["kind"] == "event"]
    told = [each for each in events if each.startswith("wire.")]
    assert told == [f"wire.{state}" for state in STATES]
    attempts = [step for step in steps if step["kind"] == "attempt"]
    assert {step["subscription_id"] for step in attempts} == {subscribed_id}
    assert {(step["state"], step["response_status"]) for step in attempts} == {("succeeded", 200)}
    for named in (request_id, "payments.send_wire", transaction_id, "wire.completed"):
        assert named in shown


async def test_a_read_leaves_no_step_and_its_log_lines_are_named(sender: Sender) -> None:
    read = await sender.api.get("/customer/wires?limit=1")
    request_id = read.headers["X-Request-Id"]

    async def answered_by_all() -> Finished:
        told = await sender.live.stack.run("trace", request_id)
        assert "it was a read" in told.out, told.err
        return told

    nothing = await eventually("every service has answered", answered_by_all)
    malformed = await sender.live.stack.run("trace", f"{uuid4()} and more")

    assert nothing.status == 1
    assert f"grep -hF -e {request_id} .local/logs/*.log" in nothing.out
    assert malformed.status == 2
    assert "printable ASCII characters without spaces" in malformed.err
