"""Traces: what callers may say of them, and what goes on. That nothing is loaded while they are off is shown by
tests/unit/providers/test_chosen_imports.py.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from libs import tracing
from libs.runtime import span_export, spans
from libs.runtime.tracing import TracingNotInstalled, traced
from tests.support.collector import Collector, Span, collecting
from tests.support.metrics import value_of
from tests.support.ports import free_ports
from tests.support.waiting import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_export, "TOGETHER_SECONDS", 0.01)
    # The collector runs in the loop that would wait for it.
    monkeypatch.setattr(span_export, "CLOSING_SECONDS", 0.01)


@pytest_asyncio.fixture
async def collector(quick: None) -> AsyncIterator[Collector]:
    async with collecting() as listening:
        with traced("gateway", listening.url):
            yield listening


async def exported(collector: Collector, count: int) -> list[Span]:
    async def all_of_them() -> list[Span] | None:
        return collector.spans if len(collector.spans) >= count else None

    return await eventually("the spans are exported", all_of_them)


def test_without_the_extra_an_operator_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "libs.runtime.spans", None)

    with pytest.raises(TracingNotInstalled, match="extra `tracing`"), traced("gateway", "http://a"):
        pass


def test_without_a_tracer_there_is_no_parent_and_no_request_is_drawn() -> None:
    assert tracing.parent(VALID) is None
    assert not tracing.is_drawn(1.0)
    with tracing.trace("GET /accounts", {}, VALID, None) as span:
        assert span is None
        assert tracing.current() is None


async def test_a_trace_goes_on_below_the_caller_with_its_state(collector: Collector) -> None:
    with tracing.trace("GET /accounts", {"http.route": "/accounts"}, VALID, "a=1,b=2"):
        parent = tracing.parent()
        assert parent is not None
        with tracing.span("send q", "producer", parent, {"left_out": None}):
            sent = tracing.current()

    server, sending = sorted(await exported(collector, 2), key=lambda span: span.kind)
    assert (server.trace_id, server.parent_id) == (TRACE, CALLER)
    assert (sending.trace_id, sending.parent_id) == (TRACE, server.span_id)
    assert sending.attributes == {}
    assert sent == f"00-{TRACE}-{sending.span_id}-01 a=1,b=2"
    assert tracing.headers_of(sent) == {"traceparent": sent[:55], "tracestate": "a=1,b=2"}


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{CALLER}",
        f"00-{TRACE.upper()}-{CALLER}-01",
        f"00-{'0' * 32}-{CALLER}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{CALLER}-01-more",
        f"ff-{TRACE}-{CALLER}-01",
        f"01-{TRACE}-{CALLER}-01-{'x' * 1000}",
    ],
)
async def test_what_is_no_traceparent_is_ignored(
    traceparent: str | None, collector: Collector
) -> None:
    with tracing.trace("GET /accounts", {}, traceparent, "a=1"):
        current = tracing.current()

    (root,) = await exported(collector, 1)
    assert root.trace_id != TRACE
    assert root.parent_id == ""
    assert current == f"00-{root.trace_id}-{root.span_id}-03", "recorded, of a random id"


@pytest.mark.parametrize(
    "tracestate",
    [
        "no member",
        "a=1,a=2",
        f"a={'x' * 600}",
        ",".join(f"{name}={'x' * 200}" for name in "abcd"),
        "a=1\nb",
    ],
)
async def test_what_is_no_tracestate_is_dropped_and_the_trace_stays(
    tracestate: str, collector: Collector
) -> None:
    with tracing.trace("GET /accounts", {}, VALID, tracestate):
        current = tracing.current()

    assert current is not None
    assert current.startswith(f"00-{TRACE}-")
    assert len(current) == 55


async def test_which_requests_are_recorded_is_not_for_callers_to_say(collector: Collector) -> None:
    assert not tracing.is_drawn(0.0)
    with tracing.trace("GET /accounts", {}, f"00-{TRACE}-{CALLER}-00", None):
        assert (tracing.current() or "").endswith("-01"), "drawn, though its caller does not record"


@pytest.mark.parametrize("parent", ["x" * 1000, "00-\0", "00-é", "two\nlines"])
def test_what_cannot_be_a_parent_is_not_stored(parent: str) -> None:
    assert tracing.storable(parent) is None
    assert tracing.from_headers(parent, None) is None


async def test_an_error_is_told_by_its_class_and_never_by_its_message(collector: Collector) -> None:
    def failing() -> None:
        with tracing.trace("GET /accounts", {}, None, None):
            raise ValueError("4111 1111")

    with pytest.raises(ValueError, match="4111"):
        failing()

    (span,) = await exported(collector, 1)
    assert span.is_error
    assert span.attributes == {"error.type": "ValueError"}
    assert b"4111" not in collector.heard


async def test_a_long_value_is_cut(collector: Collector) -> None:
    with tracing.trace("GET /accounts", {"bankside.request_id": "r" * 5000}, None, None):
        pass

    (span,) = await exported(collector, 1)
    assert len(span.attributes["bankside.request_id"]) == spans.LONGEST_ATTRIBUTE


@pytest.fixture
def nowhere(quick: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(spans, "EXPORT_SECONDS", 0.05)
    monkeypatch.setattr(span_export, "WAITING", 10)
    (port,) = free_ports(1)
    with traced("gateway", f"http://127.0.0.1:{port}"):
        yield


async def test_a_collector_that_is_away_costs_spans_and_nothing_else(nowhere: None) -> None:
    before = value_of(span_export.LOST)

    for _ in range(50):
        with tracing.trace("GET /accounts", {}, None, None):
            pass

    async def all_lost() -> bool:
        return value_of(span_export.LOST) - before == 50

    await eventually("all are counted as lost", all_lost)
