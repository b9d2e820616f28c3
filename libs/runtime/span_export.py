"""The queue between a process that ends spans and the collector: bounded, emptied by a thread, lossy rather than slow.

OpenTelemetry's own batch processor does the same, but tells of what it drops by log lines only, which are not counted.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import Counter

WAITING: Final = 2048
BATCH: Final = 128
"""Encoding one takes some milliseconds, in which the event loop waits for the interpreter."""
TOGETHER_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 1.0

EXPORTED = Counter("bankside_spans_exported_total", "Spans of traces that the collector has taken.")
LOST = Counter(
    "bankside_spans_lost_total",
    "Spans of traces that the collector did not take, or for which there was no room while it did not.",
)


class SpanQueue(SpanProcessor):
    """Takes spans from the event loop without waiting; `exporter` is called by one thread, a batch after the other."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._waiting: deque[ReadableSpan] = deque()
        self._full = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._export_for_ever, name="spans", daemon=True)
        self._thread.start()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        pass

    def on_end(self, span: ReadableSpan) -> None:
        if len(self._waiting) >= WAITING:
            LOST.inc()
            return
        self._waiting.append(span)
        if len(self._waiting) >= BATCH:
            self._full.set()

    def shutdown(self) -> None:
        """Export what waits within `CLOSING_SECONDS`; count the rest as lost."""
        self._closed = True
        self._full.set()
        self._thread.join(CLOSING_SECONDS)
        self._exporter.shutdown()
        LOST.inc(len(self._waiting))

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True

    def _export_for_ever(self) -> None:
        while not self._closed or self._waiting:
            self._full.wait(TOGETHER_SECONDS)
            self._full.clear()
            self._export_batches()

    def _export_batches(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                taken = self._exporter.export(batch) is SpanExportResult.SUCCESS
            except Exception:  # of any kind: it must not end the thread
                taken = False
            (EXPORTED if taken else LOST).inc(len(batch))
