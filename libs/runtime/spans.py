"""Spans recorded by OpenTelemetry's SDK. Imported only while traces are on: see `libs.runtime.tracing`."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from importlib.metadata import version
from types import TracebackType
from typing import Final
from uuid import uuid4

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span as RecordedSpan
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from libs import tracing
from libs.runtime.span_export import SpanQueue
from libs.tracing import Attributes, Kind

TRACES_PATH: Final = "/v1/traces"
EXPORT_SECONDS = 5.0
"""For one export with its retries; what is not taken by then is lost."""
LONGEST_ATTRIBUTE = 256
MOST_ATTRIBUTES = 32

_KINDS = {"client": SpanKind.CLIENT, "producer": SpanKind.PRODUCER, "consumer": SpanKind.CONSUMER}
_propagator = TraceContextTextMapPropagator()


class Recorder:
    """The tracer of one process.

    Args:
        endpoint: without `/v1/traces`, as OTEL_EXPORTER_OTLP_ENDPOINT has it. The exporter reads the other variables of
            that family itself, of which `OTEL_EXPORTER_OTLP_HEADERS` and `…_CERTIFICATE` are of use.
    """

    def __init__(self, service: str, endpoint: str) -> None:
        # It logs from the thread of the exporter, and quotes headers of callers. What is lost is counted instead.
        for library in ("opentelemetry", "urllib3"):
            logging.getLogger(library).setLevel(logging.CRITICAL + 1)
        exporter = OTLPSpanExporter(
            endpoint=endpoint.rstrip("/") + TRACES_PATH, timeout=EXPORT_SECONDS
        )
        self._queue = SpanQueue(exporter)
        provider = TracerProvider(
            sampler=ALWAYS_ON,  # of what the gateway chose
            resource=Resource.create(
                {
                    "service.name": service,
                    "service.namespace": "bankside",
                    "service.version": version("bankside"),
                    "service.instance.id": str(uuid4()),
                }
            ),
            shutdown_on_exit=False,
            span_limits=SpanLimits(
                max_span_attributes=MOST_ATTRIBUTES, max_span_attribute_length=LONGEST_ATTRIBUTE
            ),
        )
        provider.add_span_processor(self._queue)
        self._tracer = provider.get_tracer("bankside")

    def trace(
        self, name: str, attributes: Attributes, traceparent: str | None, tracestate: str | None
    ) -> AbstractContextManager[tracing.Span]:
        headers = {"traceparent": traceparent or "", "tracestate": tracestate or ""}
        caller = _propagator.extract(headers, Context())
        return _Spanning(self._start(name, SpanKind.SERVER, caller, attributes))

    def span(
        self, name: str, kind: Kind, parent: str, attributes: Attributes
    ) -> AbstractContextManager[tracing.Span]:
        return _Spanning(self._start(name, _KINDS[kind], _context(parent), attributes))

    def ended(
        self, name: str, kind: Kind, parent: str, attributes: Attributes, seconds: float
    ) -> None:
        began = time.time_ns() - int(seconds * 1e9)
        self._start(name, _KINDS[kind], _context(parent), attributes, began).end()

    def close(self) -> None:
        """Export what waits, for a moment at most."""
        self._queue.shutdown()

    def _start(
        self,
        name: str,
        kind: SpanKind,
        context: Context,
        attributes: Attributes,
        start_time: int | None = None,
    ) -> RecordedSpan:
        return self._tracer.start_span(
            name, context, kind, _present(attributes), start_time=start_time
        )


class _Spanning:
    """A span that is the parent of what its body does."""

    def __init__(self, recorded: RecordedSpan) -> None:
        self._recorded = recorded
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, set_span_in_context(recorded, Context()))
        # Empty where OTEL_SDK_DISABLED turns the recording off. A caller's `tracestate` may be of any length.
        self._as_parent = tracing.storable(" ".join(carrier.values())) or ""
        self._has_failed = False

    def __enter__(self) -> tracing.Span:
        self._entered = tracing.enter(self._as_parent, self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tracing.leave(self._entered)
        if kind is not None and not self._has_failed:
            self.fail(kind.__name__)
        self._recorded.end()

    def set(self, attributes: Attributes) -> None:
        self._recorded.set_attributes(_present(attributes))

    def fail(self, error_type: str) -> None:
        self._has_failed = True
        self._recorded.set_attribute("error.type", error_type)
        self._recorded.set_status(Status(StatusCode.ERROR))


def _context(parent: str) -> Context:
    return _propagator.extract(tracing.headers_of(parent), Context())


def _present(attributes: Attributes) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in attributes.items() if value is not None}
