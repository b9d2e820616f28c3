"""`bankside trace`: the way of one request, by the id in its answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

from libs.cli.decisions import Flag
from libs.cli.output import console, escape, print_json
from libs.cli.pages import tell_unreachable
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating.requests import (
    TRACE_REQUEST,
    RequestTrace,
    StepKind,
    TraceRequest,
    TraceStep,
)

_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_OWNERS = {
    "tenant": "tenant",
    "customer_id": "customer",
    "command_id": "command",
    "saga_id": "saga",
}
"""What many steps have in common."""
_IDS = {
    "transaction_id": "wire",
    "idempotency_key": "idempotency key",
    "event_id": "event",
    "resource_id": "of",
    "subscription_id": "subscription",
    "delivery_id": "delivery",
    "request_id": "raised by request",
}
_BAD = frozenset({"parked", "abandoned", "refused", "failed", "unroutable", "outcome unknown"})
_WIDEST_KIND = max(len(kind) for kind in StepKind)


def trace(request_id: str, /, *, json: Flag = False) -> int:
    """Show the way of a request, in the order of time: who asked for what, the command and its answer, what was asked
    of providers, what became of it, the events that it raised and their deliveries.

    The exit status is 1 when nothing is recorded of it, or a service does not answer.

    Such as `bankside trace REQUEST_ID`.

    Args:
        request_id: As in the header X-Request-Id of its answer, or `request_id` of its error.
        json: Print one JSON document.
    """
    if not _REQUEST_ID.fullmatch(request_id):
        raise OperatorError(
            "REQUEST_ID is 1 to 128 printable ASCII characters without spaces, as X-Request-Id of an answer:"
            f" {request_id[:200]!r} is not."
        )
    found = ask(TRACE_REQUEST, TraceRequest(request_id=request_id))
    if json:
        print_json(found.model_dump())
    else:
        show(found)
    return tell_unreachable(found.unreachable) or (0 if found.steps else 1)


def show(found: RequestTrace) -> None:
    """Print a trace as lines: for each step when, where and what, and below it the ids.

    Tenant, customer, command and saga stand where they are others than before.
    """
    out = console()
    out.print(f"[bold]Request {escape(found.request_id)}[/]")
    day = None
    told: dict[str, str] = {}
    width = max((len(step.service) for step in found.steps), default=0)
    for step in found.steps:
        at = step.at.astimezone(UTC)
        if day != at.date():
            day = at.date()
            out.print(f"[dim]{day} (UTC)[/]")
        out.print(_line(step, at, width))
        if facts := ", ".join(_facts(step, told)):
            out.print(f"              [dim]{escape(facts)}[/]")
    for service in found.cut:
        out.print(f"{service} has more of it than is shown.")
    if found.note is not None:
        out.print(escape(found.note))
    if not found.steps:
        wanted = shlex.quote(found.request_id)
        out.print(f"With make up:        grep -hF -e {escape(wanted)} .local/logs/*.log")
        out.print(
            f"With docker compose: docker compose logs --no-log-prefix | grep -F -e {escape(wanted)}"
        )


def _line(step: TraceStep, at: datetime, width: int) -> str:
    said = [escape(step.what)]
    if step.state is not None:
        colour = "red" if step.state in _BAD else "bold"
        said.append(f"[{colour}]{escape(step.state.replace('_', ' '))}[/]")
    if step.response_status is not None:
        said.append(str(step.response_status))
    if step.error is not None:
        said.append(f"[red]{escape(step.error)}[/]")
    kind = step.kind.replace("_", " ").ljust(_WIDEST_KIND)
    time = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
    return f"{time}  {step.service.ljust(width)}  {kind}  {'  '.join(said)}"


def _facts(step: TraceStep, told: dict[str, str]) -> Iterator[str]:
    """`told`: what the lines before have said; what is new is added."""
    if step.subscription_key is not None:
        yield f"key {step.subscription_key}"
    if step.actor is not None:
        yield f"by {step.actor}"
    if step.address is not None:
        yield f"from {step.address}"
    for name, called in _OWNERS.items():
        value = getattr(step, name)
        if value is not None and told.get(name) != value:
            told[name] = value
            yield f"{called} {value}"
    for name, called in _IDS.items():
        value = getattr(step, name)
        if value is not None:
            yield f"{called} {value}"
    if step.attempts is not None:
        yield (
            f"attempt {step.attempts}"
            if step.kind is StepKind.ATTEMPT
            else f"attempts {step.attempts}"
        )
    if step.duration_ms is not None:
        yield f"{step.duration_ms} ms"
    if step.until is not None:
        yield f"answered after {(step.until - step.at).total_seconds():.3f} s"
    if step.next_attempt_at is not None:
        yield f"next attempt {step.next_attempt_at:%Y-%m-%d %H:%M:%S}Z"
    if step.note is not None:
        yield step.note
