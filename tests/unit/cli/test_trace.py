"""A trace as the command line prints it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.cli import trace
from libs.client.errors import OperatorError
from libs.contracts.operating.requests import NOTHING_RECORDED, RequestTrace, StepKind, TraceStep

AT = datetime(2026, 11, 23, 23, 59, 59, 123456, UTC)


def step(seconds: float, service: str, kind: StepKind, what: str, **values: Any) -> TraceStep:
    at = AT + timedelta(seconds=seconds)
    return TraceStep(at=at, service=service, kind=kind, what=what, **values)


def shown(capsys: pytest.CaptureFixture[str], *steps: TraceStep, **values: Any) -> list[str]:
    everything = {"request_id": "req-1", "cut": [], "unreachable": [], "note": None} | values
    trace.show(RequestTrace(steps=[*steps], **everything))
    return capsys.readouterr().out.splitlines()


def test_a_step_has_a_line_with_its_ids_below(capsys: pytest.CaptureFixture[str]) -> None:
    of = {"tenant": "acme", "customer_id": "c-1"}
    lines = shown(
        capsys,
        step(0, "payments", StepKind.COMMAND, "send_wire", state="accepted", **of, command_id="1"),
        step(0.5, "payments", StepKind.WIRE, "7.77 USD", state="pending_approval", **of),
        step(
            *(1, "webhook_dispatcher", StepKind.ATTEMPT, "wire.created"),
            state="failing",
            response_status=500,
            error="It answered [500].\x1b",
            attempts=2,
            duration_ms=12,
            tenant="brass",
        ),
        step(
            *(2, "onboarding", StepKind.PROVIDER_REQUEST, "open_account"),
            state="done",
            until=AT + timedelta(seconds=2.031),
            note="By [bold]hand.",
        ),
    )

    assert lines == [
        "Request req-1",
        "2026-11-23 (UTC)",
        "23:59:59.123  payments            command           send_wire  accepted",
        "              tenant acme, customer c-1, command 1",
        "23:59:59.623  payments            wire              7.77 USD  pending approval",
        "2026-11-24 (UTC)",
        "00:00:00.123  webhook_dispatcher  attempt           wire.created  failing  500  It answered [500].\\x1b",
        "              tenant brass, attempt 2, 12 ms",
        "00:00:01.123  onboarding          provider request  open_account  done",
        "              answered after 0.031 s, By [bold]hand.",
    ]


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    one = step(0, "payments", StepKind.COMMAND, "send_wire")
    cut = shown(capsys, one, cut=["payments"])
    nothing = shown(capsys, request_id="it's-[1]", note=NOTHING_RECORDED)

    assert cut[-1] == "payments has more of it than is shown."
    assert nothing[1:] == [
        NOTHING_RECORDED,
        """With make up:        grep -hF -e 'it'"'"'s-[1]' .local/logs/*.log""",
        """With docker compose: docker compose logs --no-log-prefix | grep -F -e 'it'"'"'s-[1]'""",
    ]


@pytest.mark.parametrize("wrong", ["", "a b", "x" * 129, "caf\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_what_can_be_no_request_id_is_refused_with_a_sentence(wrong: str) -> None:
    with pytest.raises(OperatorError, match="printable ASCII characters without spaces"):
        trace.trace(wrong)
