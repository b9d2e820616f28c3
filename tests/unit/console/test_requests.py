"""A request's page, and the search that leads to it."""

from __future__ import annotations

from datetime import timedelta

from libs.contracts.operating.requests import (
    NOTHING_RECORDED,
    TRACE_REQUEST,
    RequestTrace,
    StepKind,
    TraceRequest,
    TraceStep,
)
from libs.contracts.operating.search import SEARCH, FoundId, Kind, SearchResult
from tests.unit.console.browser import console
from tests.unit.console.gateway_double import AT
from tests.unit.console.samples import CUSTOMER_ID, WIRE_ID, gateway

REQUEST_ID = "req/1?&x"
PAGE = "/requests/req%2F1%3F%26x"
EVENT_ID = "evt_019aacf2-1b3e-7000-8000-000000000003"


def trace(*steps: TraceStep, note: str | None = None) -> RequestTrace:
    return RequestTrace(
        request_id=REQUEST_ID, steps=[*steps], cut=[], unreachable=["onboarding"], note=note
    )


async def test_the_steps_of_a_request_link_to_what_they_name() -> None:
    over, parked = (
        TraceStep(
            at=AT,
            service="payments",
            kind=StepKind.RESULT,
            what="payments.send_wire",
            state=state,
            command_id=command_id,
        )
        for state, command_id in (("done", WIRE_ID), ("parked", CUSTOMER_ID))
    )
    sent = TraceStep(
        at=AT,
        service="payments",
        kind=StepKind.WIRE,
        what="7.77 USD",
        state="outcome_unknown",
        customer_id=CUSTOMER_ID,
        transaction_id=WIRE_ID,
    )
    told = TraceStep(
        at=AT + timedelta(seconds=2),
        service="webhook_dispatcher",
        kind=StepKind.EVENT,
        what="wire.created",
        event_id=EVENT_ID,
        request_id="req-2",
    )
    delivered = TraceStep(
        at=AT,
        service="webhook_dispatcher",
        kind=StepKind.DELIVERY,
        what="wire.created",
        subscription_id=CUSTOMER_ID,
        delivery_id=WIRE_ID,
    )
    abandoned = TraceStep(
        at=AT,
        service="onboarding",
        kind=StepKind.AUDIT,
        what="commands.abandon",
        subscription_key="sub_of_an_operator",
        actor="operator:ada",
    )
    asked = TraceStep(
        at=AT,
        service="payments",
        kind=StepKind.COMMAND,
        what="payments.send_wire",
        subscription_key="sub_1",
    )
    double = gateway()
    double.answer(TRACE_REQUEST, trace(over, parked, sent, told, delivered, abandoned, asked))
    async with console(double) as browser:
        answer = await browser.get(PAGE)

    assert double.commands(TRACE_REQUEST) == [TraceRequest(request_id=REQUEST_ID)]
    assert answer.text.index("7.77 USD") < answer.text.index("wire.created")
    assert f'href="/commands/{WIRE_ID}"' not in answer.text, "a final command has no page"
    for link in (
        f"/commands/{CUSTOMER_ID}",
        f"/wires/{WIRE_ID}",
        "/keys/sub_1",
        f"/customers/{CUSTOMER_ID}",
        f"/events/{EVENT_ID}",
        "/requests/req-2",
        f"/subscriptions/{CUSTOMER_ID}/deliveries/{WIRE_ID}",
        "/audit?service=onboarding&amp;actor=operator%3Aada",
    ):
        assert f'href="{link}"' in answer.text
    assert "/keys/sub_of_an_operator" not in answer.text, "keys of operators have no page"
    assert "outcome unknown" in answer.text
    assert ">onboarding<" in answer.text


async def test_a_request_of_which_nothing_is_recorded_says_why() -> None:
    double = gateway()
    double.answer(TRACE_REQUEST, trace(note=NOTHING_RECORDED))
    async with console(double) as browser:
        nothing = await browser.get(PAGE)
        impossible = await browser.get("/requests/a%20b")

    assert "it was a read" in nothing.text
    assert impossible.status == 404


async def test_the_search_for_a_request_id_leads_to_its_way() -> None:
    command = FoundId(service="payments", kind=Kind.COMMAND, id=WIRE_ID, label="send_wire")
    wire = FoundId(service="payments", kind=Kind.WIRE, id=WIRE_ID)
    double = gateway()
    query = "/search?q=req%2F1%3F%26x"
    async with console(double) as browser:
        double.answer(SEARCH, SearchResult(found=[command, wire], unreachable=[]))
        found = await browser.get(query)
        of_command = await browser.get(f"/search?q={WIRE_ID.upper()}")
        double.answer(SEARCH, SearchResult(found=[command], unreachable=["onboarding"]))
        perhaps = await browser.get(query)

    assert found.location == PAGE
    assert of_command.location is None
    assert f'href="{PAGE}"' in perhaps.text
    assert f'href="/commands/{WIRE_ID}"' in perhaps.text
