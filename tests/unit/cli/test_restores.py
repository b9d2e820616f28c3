"""Closing the cases of a database that went back: what is shown, what is asked, and what is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts.operating import restores as contract
from tests.unit.cli.at_terminal import AtTerminal

SINCE = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
CLOSE = ("restores", "close", "payments", "--reason", "All explained.")


def terminal(*missing: int, unreachable: tuple[str, ...] = ()) -> AtTerminal:
    """Payments has a case for each number of missing records."""
    found = contract.GatheredRestores(
        restores=[
            contract.Restore(
                service="payments",
                since=SINCE,
                missing=count,
                missing_records=[f"wire_{number}" for number in range(min(count, 2))],
            )
            for count in missing
        ],
        services=["payments"],
        unreachable=[*unreachable],
    )
    closed = contract.RestoreDecided(service="payments", closed=len(missing))
    return AtTerminal(
        {
            contract.LIST_RESTORES.name: lambda _: found,
            contract.CLOSE_RESTORES.name: lambda _: closed,
        }
    )


def closed_with(desk: AtTerminal) -> list[Any]:
    return [command for name, command in desk.asked if name == contract.CLOSE_RESTORES.name]


def test_the_cases_are_shown_and_closed_as_they_were_shown() -> None:
    desk = terminal(3, 1)

    done = desk.run(*CLOSE, types="y")

    assert done.status == 0
    assert "since 2026-11-23 10:00:00Z\n    wire_0\n    wire_1\n    and 1 more" in done.out
    assert "have the wires that were held back sent, for good?" in done.out
    assert "2 cases are closed" in done.out
    [command] = closed_with(desk)
    assert command.missing == 4


@pytest.mark.parametrize(
    ("more", "types", "ends"),
    [((), "n", 1), ((), None, 2), (("--json",), "y", 2)],
    ids=["not agreed", "no terminal", "nothing is asked in JSON"],
)
def test_nothing_is_closed_without_a_yes(
    more: tuple[str, ...], types: str | None, ends: int
) -> None:
    desk = terminal(1)

    done = desk.run(*CLOSE, *more, types=types)

    assert done.status == ends
    assert closed_with(desk) == []


def test_a_script_says_yes_and_sends_what_is_missing() -> None:
    desk = terminal(3)

    done = desk.run(*CLOSE, "--yes", "--json")

    assert json.loads(done.out) == {"service": "payments", "closed": True}
    [command] = closed_with(desk)
    assert command.missing == 3


@pytest.mark.parametrize(
    ("desk", "says"),
    [
        (terminal(), "Nothing is missing"),
        (terminal(unreachable=("payments",)), "payments does not answer"),
    ],
    ids=["no case", "a service that is away"],
)
def test_cases_that_cannot_be_shown_are_not_closed(desk: AtTerminal, says: str) -> None:
    done = desk.run(*CLOSE, "--yes")

    assert (done.status, closed_with(desk)) == (2, [])
    assert says in done.err


def test_the_list_has_how_many_are_missing_beyond_those_that_are_named() -> None:
    done = terminal(3).run("restores", "list", "--json")

    [case] = json.loads(done.out)["payments"]
    assert (case["missing"], len(case["missing_records"])) == (3, 2)
