"""A wire from its request to the delivery of its events is one trace, which its caller may have begun."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest_asyncio

from tests.e2e.wires.hands import WIRE, sender_of
from tests.support.collector import Collector, Span, collecting
from tests.support.infrastructure import Environment
from tests.support.live import Deployment, Live, hands_on
from tests.support.receivers import receiver
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import BANK, SERVED, running_stack
from tests.support.subscribers import CUSTOMER, subscribed
from tests.support.waiting import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
REQUEST = "the-way-of-a-wire"
STATES = ("created", "submitted", "completed")
ASKED = ("gateway: POST /customer/wire",)
SENT = (*ASKED, "gateway: send payments.send_wire")
DRIVEN = (*SENT, "payments: process payments.send_wire")
OWNER = (*DRIVEN, "payments: send onboarding.find_account_owner")
ABOVE = {"created": DRIVEN, "submitted": SENT, "completed": SENT}
"""Of each event. What a report of the bank causes has its parent in the command's row, so that it is below the message
rather than below the drive. So is `submitted`, where the report comes before the bank's answer to the drive.
"""
DRIVEN_SUBMITTED = (*DRIVEN, "payments: send wire.submitted")
EXPECTED = {
    OWNER,
    (*OWNER, "onboarding: process onboarding.find_account_owner"),
    *(
        (*above, f"payments: send wire.{state}", f"webhook_dispatcher: {what}")
        for state, above in ABOVE.items()
        for what in (f"process wire.{state}", "POST webhook")
    ),
}
NEEDED = [each for each in SERVED if each.name not in ("ledger_read", "reconciliation")]


@pytest_asyncio.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as listening:
        yield listening


@pytest_asyncio.fixture
async def traced(
    fresh_environment: Environment, collector: Collector, tmp_path: Path
) -> AsyncIterator[Live]:
    events = RecordedEvents(fresh_environment.amqp_url)
    await events.begin()
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "BANKSIDE_TRACE_RATIO": "1"}
    async with (
        running_stack(fresh_environment, tmp_path, NEEDED, bank=BANK, **settings) as stack,
        hands_on(Deployment(stack, events)) as live,
    ):
        yield live


def way_of(span: Span, spans: list[Span]) -> tuple[str, ...]:
    """From the caller to this span: the services and names of the spans above it."""
    by_id = {each.span_id: each for each in spans}
    way: list[str] = []
    at: Span | None = span
    while at is not None:
        way.append(f"{at.service}: {at.name}")
        if at.parent_id == CALLER:
            break
        at = by_id.get(at.parent_id)
    return tuple(reversed(way))


async def test_a_wire_is_one_trace(traced: Live, collector: Collector) -> None:
    live = traced
    data = await live.onboarded()
    await live.bank.deposit(data["business"]["account_id"], Decimal("100.00"))
    sender = await sender_of(live, data)
    async with (
        receiver() as endpoint,
        subscribed(sender.api, endpoint, "wire", prefix=CUSTOMER) as subscriber,
    ):
        headers = {"traceparent": f"00-{TRACE}-{CALLER}-00", "X-Request-Id": REQUEST}
        answer = await sender.api.call("POST", WIRE, sender.order(), headers=headers)
        assert answer.status == 200
        await subscriber.heard_types(*map("wire.{}".format, STATES))
    requests = subscriber.requests

    async def whole() -> set[tuple[str, ...]]:
        spans = collector.of_trace(TRACE)
        ways = {way_of(span, spans) for span in spans}
        ways |= {(*SENT, *way[3:]) for way in ways if way[:4] == DRIVEN_SUBMITTED}
        assert {way[0] for way in ways} == {ASKED[0]}, "each is below the request"
        assert ways >= EXPECTED, EXPECTED - ways
        return ways

    ways = await eventually("all spans are exported", whole)
    (provider,) = {way for way in ways if way[-1].startswith("payments: core ")}
    assert provider[:-1] == DRIVEN
    assert not any(span.is_error for span in collector.of_trace(TRACE))
    for request in requests:
        assert "traceparent" not in request.headers, "endpoints are told nothing of it"

    async def is_logged() -> bool:
        """Lines of a moment are written together, later than what they say."""
        *written, _ = live.stack.log("webhook_dispatcher").split("\n")
        lines = [json.loads(line) for line in written]
        events = [line["event"] for line in lines if line.get("request_id") == REQUEST]
        assert events.count("event_recorded") == len(STATES)
        assert events.count("delivery_attempted") == len(requests)
        return True

    await eventually("the dispatcher has logged all of it", is_logged)
