"""A collector of traces: what services export to it, as the spans that they recorded."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.waiting import eventually

EXPORTER = "spans"
"""The name of the thread of `libs.runtime.span_export`."""


@dataclass(frozen=True)
class Span:
    """One that was exported. Ids are hexadecimal; `kind` is its number in OTLP."""

    service: str
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_error: bool


@dataclass
class Collector:
    """A collector of traces that keeps what it gets.

    Args:
        heard: all bodies.
    """

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    heard: bytearray = field(default_factory=bytearray)

    def of_trace(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.heard += body
        message = ExportTraceServiceRequest.FromString(body)
        for resource in message.resource_spans:
            service = _values(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_span(service, span) for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")


def _span(service: str, span: Any) -> Span:
    return Span(
        service,
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _values(span.attributes),
        span.status.code == span.status.STATUS_CODE_ERROR,
    )


def _values(attributes: Iterable[Any]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


async def none_exports() -> bool:
    return not any(thread.name == EXPORTER for thread in threading.enumerate())


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector that listens on a port of its own."""
    collector = Collector()
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
        # One that goes on would count what it loses in the next test.
        await eventually("exporters of this process have ended", none_exports)
    finally:
        await runner.cleanup()
