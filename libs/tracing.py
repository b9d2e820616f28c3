"""Traces: which span the work of a task belongs to, and spans below it. They are recorded by `libs.runtime.tracing`.

A trace begins at the gateway, which also decides whether it is recorded. Every other span needs a parent: that of this
task, or one that came with a message or out of a row. Work that belongs to no recorded trace has no parent, and nothing
is done for it. So it is for all work while no tracer is installed, which is the default.

A parent is a text of up to `LONGEST` characters, the W3C headers `traceparent` and, after a space, `tracestate`. It
travels in envelopes and in headers of events, and is stored with what is driven or delivered later.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from typing import Literal, NamedTuple, Protocol

Kind = Literal["client", "producer", "consumer"]
Attributes = Mapping[str, str | int | float | bool | None]
"""Those that are None are left out. Ids, operations, codes and figures only: never what a caller's data says."""

LONGEST_TRACESTATE = 512
"""What W3C Trace Context has every participant carry at least; a longer one is dropped."""
LONGEST = 55 + 1 + LONGEST_TRACESTATE


class Span(Protocol):
    """A span that is recorded."""

    def set(self, attributes: Attributes) -> None: ...

    def fail(self, error_type: str) -> None:
        """End as an error of this type: a code, or the name of an exception's class."""
        ...


Spanning = AbstractContextManager[Span | None]
"""The span lasts as long as the body, in which it is this task's parent. None: nothing is recorded. An exception makes
it an error, of which the class is recorded, and not the message.
"""


class Tracer(Protocol):
    """What `trace`, `span` and `ended` do once it is installed."""

    def trace(
        self, name: str, attributes: Attributes, traceparent: str | None, tracestate: str | None
    ) -> Spanning: ...

    def span(self, name: str, kind: Kind, parent: str, attributes: Attributes) -> Spanning: ...

    def ended(
        self, name: str, kind: Kind, parent: str, attributes: Attributes, seconds: float
    ) -> None: ...


class _Current(NamedTuple):
    parent: str
    span: Span


NOTHING: Spanning = nullcontext(None)
_current: ContextVar[_Current | None] = ContextVar("trace", default=None)
_tracer: Tracer | None = None


def install(tracer: Tracer | None) -> None:
    """Once, when the process starts."""
    global _tracer  # noqa: PLW0603 - one for each process, as its log
    _tracer = tracer


def is_drawn(ratio: float) -> bool:
    """Whether the trace of a new request is recorded, of which this share is. It is drawn for each request: neither the
    caller's flag nor the caller's trace id decides, or callers could have all of theirs recorded.
    """
    return _tracer is not None and random.random() < ratio  # noqa: S311 - a share, no secret


def trace(
    name: str, attributes: Attributes, traceparent: str | None, tracestate: str | None
) -> Spanning:
    """The first span of this system in a trace, of kind server, for a request that was drawn.

    Args:
        traceparent, tracestate: as the caller sent them. What is not valid by W3C Trace Context is ignored.
    """
    return NOTHING if _tracer is None else _tracer.trace(name, attributes, traceparent, tracestate)


def parent(stored: str | None = None) -> str | None:
    """The parent of a span that would begin now: `stored`, or the span of this task. None: nothing is to be recorded,
    which is all that untraced work asks here.
    """
    return None if _tracer is None else stored or current()


def span(name: str, kind: Kind, parent: str, attributes: Attributes) -> Spanning:
    """A span below one that `parent` gave."""
    return NOTHING if _tracer is None else _tracer.span(name, kind, parent, attributes)


def ended(name: str, kind: Kind, parent: str, attributes: Attributes, *, seconds: float) -> None:
    """Record a span below one that `parent` gave, which took `seconds` and ends now."""
    if _tracer is not None:
        _tracer.ended(name, kind, parent, attributes, seconds)


def current() -> str | None:
    """The span that this task works for, as a parent."""
    now = _current.get()
    return None if now is None else now.parent or None


def messaging(
    operation: str, destination: str, routing_key: str, message_id: str
) -> dict[str, str | int | None]:
    """The attributes of a span that sends or processes a message, as OpenTelemetry names them.

    Args:
        operation: `send` or `process`.
        destination: the exchange, the routing key and, where it is processed, the queue, with colons between them.
    """
    return {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": destination,
        "messaging.rabbitmq.destination.routing_key": routing_key,
        "messaging.message.id": message_id,
    }


def note(attributes: Attributes) -> None:
    """Add these to the span that this task works for."""
    if (now := _current.get()) is not None:
        now.span.set(attributes)


def enter(parent: str, span: Span) -> Token[_Current | None]:
    """For tracers: what this task does belongs to the span, which is `parent` to others, until `leave`."""
    return _current.set(_Current(parent, span))


def leave(entered: Token[_Current | None]) -> None:
    _current.reset(entered)


def storable(parent: str | None) -> str | None:
    """A parent that another process sent, if it can be one, without a `tracestate` that is too long; None otherwise.
    Whether it is valid is for the tracer.
    """
    if parent is None:
        return None
    if len(parent) > LONGEST:
        parent = parent.partition(" ")[0]
    is_header = len(parent) <= LONGEST and parent.isascii() and parent.isprintable()
    return parent if is_header else None


def from_headers(traceparent: object, tracestate: object) -> str | None:
    """The headers of a message as a parent; None when they are none."""
    if not isinstance(traceparent, str):
        return None
    return storable(f"{traceparent} {tracestate}" if isinstance(tracestate, str) else traceparent)


def headers_of(parent: str) -> dict[str, str]:
    """A parent as headers."""
    traceparent, _, tracestate = parent.partition(" ")
    headers = {"traceparent": traceparent}
    return headers | {"tracestate": tracestate} if tracestate else headers
