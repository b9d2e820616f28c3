"""What came of a request or of a message: its metric, its one line in the log, and its span."""

from __future__ import annotations

from typing import Unpack

from libs import tracing
from libs.contracts.errors import ERRORS, InternalError
from libs.contracts.request_context import request_context
from libs.handling.metrics import HANDLED_SECONDS, INTERNAL_ERRORS
from libs.runtime.request_log import Details, request_log

OK = "ok"


def note_handled(
    event: str, operation: str, outcome: str, seconds: float, **details: Unpack[Details]
) -> None:
    """Arguments as of `RequestLog.note`."""
    HANDLED_SECONDS.labels(operation, outcome).observe(seconds)
    if outcome == InternalError.code:
        INTERNAL_ERRORS.labels(operation).inc()
    request_log.note(event, operation, outcome, seconds, **details)


def processing(
    exchange: str, routing_key: str, queue: str, operation: str, message_id: str, sent: str | None
) -> tracing.Spanning:
    """The span of a command's drive or of a query's answer. `sent`: the span that sent it."""
    if (parent := tracing.parent(sent)) is None:
        return tracing.NOTHING
    return tracing.span(
        f"process {operation}",
        "consumer",
        parent,
        tracing.messaging("process", f"{exchange}:{routing_key}:{queue}", routing_key, message_id),
    )


def conclude(span: tracing.Span, operation: str, outcome: str, **details: str | int) -> None:
    """Note the operation's outcome, request and key in the span, which has failed unless that is `ok` or a 4xx."""
    current = request_context.get()
    span.set(
        {
            "bankside.operation": operation,
            "bankside.outcome": outcome,
            "bankside.request_id": current.request_id if current else None,
            "bankside.key": current.actor if current else None,
            **{f"bankside.{name}": value for name, value in details.items()},
        }
    )
    if outcome != OK and not (outcome in ERRORS and ERRORS[outcome].status < 500):
        span.fail(outcome)
