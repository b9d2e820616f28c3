"""Traces of this process, recorded by OpenTelemetry while the setting names a collector. Without it none of
OpenTelemetry's modules is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from libs import tracing


class TracingNotInstalled(Exception):
    """The extra of that name is missing. The text is a sentence for the operator."""


@contextmanager
def traced(service: str, endpoint: str | None) -> Iterator[None]:
    """Record what the body does, and export it to the collector behind `endpoint` (OTLP over HTTP).

    Raises:
        TracingNotInstalled
    """
    if endpoint is None:
        yield
        return
    try:
        from libs.runtime.spans import Recorder  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise TracingNotInstalled(
            "install bankside with its extra `tracing`, or unset OTEL_EXPORTER_OTLP_ENDPOINT."
        ) from error
    recorder = Recorder(service, endpoint)
    tracing.install(recorder)
    try:
        yield
    finally:
        tracing.install(None)
        recorder.close()
