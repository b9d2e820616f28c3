"""Lists that `--limit` cuts off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from libs.cli import pages
from libs.contracts.operating.commands import (
    LIST_COMMANDS,
    SERVICES,
    ListCommandsOf,
    OpenCommand,
)
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.saga_steps import LIST_STEPS, SagaStep
from libs.contracts.operating.services import Gathered
from libs.contracts.operating.wires import LIST_WIRES, ListOperatorWires
from tests.unit.cli.at_terminal import AtTerminal

CUT = "bankside: there are more than these 50: see --limit.\n"
CUT_OF = "bankside: there are more of {} than these 50: see --limit.\n"


@pytest.mark.parametrize(("rows", "said"), [(7, ""), (250, "there are more than these 210")])
def test_a_list_that_is_cut_off_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: int, said: str
) -> None:
    def ask(_: Any, query: ListOperatorWires) -> Listed[int]:
        begin = int(query.after or 0)
        end = min(begin + query.limit, rows)
        return Listed[int](items=[*range(begin, end)], next=str(end) if end < rows else None)

    monkeypatch.setattr(pages, "ask", ask)

    found = pages.list_of(LIST_WIRES, ListOperatorWires(), 210)

    assert len(found) == min(rows, 210)
    assert said in capsys.readouterr().err


def open_commands(number: int) -> AtTerminal:
    def listed(query: ListCommandsOf) -> Gathered[OpenCommand]:
        command = OpenCommand(
            service="onboarding",
            command_id=str(UUID(int=7)),
            operation="onboarding.onboard_customer",
            tenant="acme",
            ordering_key="customer",
            accepted_at=datetime(2026, 11, 23, tzinfo=UTC),
            request_id="request",
            attempts=1,
            faults=0,
            is_driven=False,
            last_error=None,
            next_attempt_at=None,
            parked_at=None,
            parked_because=None,
        )
        shown = min(query.limit, number)
        following = "more" if number > shown else None
        return Gathered[OpenCommand](items=[command] * shown, next=following, unreachable=[])

    def no_steps(_: Any) -> Listed[SagaStep]:
        return Listed[SagaStep](items=[], next=None)

    return AtTerminal({LIST_COMMANDS.name: listed, LIST_STEPS.name: no_steps})


@pytest.mark.parametrize("json_too", [(), ("--json",)])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("commands", "list", "--service", "onboarding"), CUT_OF.format("onboarding")),
        (("commands", "list"), "".join(map(CUT_OF.format, SERVICES))),
        (("sagas", "list"), CUT),
    ],
)
def test_open_commands_that_are_cut_off_are_told_as_other_lists_are(
    command: tuple[str, ...], said: str, json_too: tuple[str, ...]
) -> None:
    cut = open_commands(3000).run(*command, *json_too)
    whole = open_commands(50).run(*command, *json_too)

    assert (cut.status, cut.err) == (0, said)
    assert (whole.status, whole.err) == (0, "")


@pytest.mark.parametrize(("number", "heading"), [(0, "none"), (3, "3"), (3000, "50 or more")])
def test_a_heading_does_not_take_a_part_of_a_list_for_the_whole(number: int, heading: str) -> None:
    done = open_commands(number).run("sagas", "list")

    assert done.out.splitlines()[0] == f"Unfinished commands: {heading}"
    assert "Refused compensations: none" in done.out
