"""Dead letters as they are shown; replaying and discarding those of several queues, of which a later request fails."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts import errors
from libs.contracts.operating import dead_letters as contract
from libs.contracts.operating.overview import GET_OVERVIEW, Overview
from libs.contracts.operating.services import Gathered
from libs.messaging.topology import dead_queues
from tests.unit.cli.at_terminal import AtTerminal

FIRST, SECOND, *_ = dead_queues()
REPLAY = ("dead", "replay", "--all", "--reason", "Mended.", "--yes")
DISCARD = ("dead", "discard", "letter", "--reason", "A test.", "--yes")
FAULTS = [
    errors.Unavailable("No.", headers={}),
    errors.OutcomePending(errors.LOOK_BEFORE_REPEATING),
    errors.InternalError("No."),
    errors.NotFound("No."),
]


def letter(queue: str, sender: str | None = None) -> contract.DeadLetter:
    return contract.DeadLetter(
        service=queue.partition(".")[0],
        queue=queue,
        id="letter",
        command_id=None,
        operation="payments.send_wire",
        event_type=None,
        sender=sender,
        tenant=None,
        reason="refused",
        because=None,
        sent_at=None,
        died_at=datetime(2026, 11, 23, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("sender", "shown_as"), [("onboarding", "onboarding"), (None, "not known")]
)
def test_a_letter_is_listed_and_shown_with_its_sender(sender: str | None, shown_as: str) -> None:
    found = letter(FIRST, sender)
    whole = contract.DeadLetterWithBody(**found.model_dump(), body="{}")
    terminal = AtTerminal(
        {
            contract.LIST_DEAD_LETTERS.name: lambda _: Gathered[contract.DeadLetter](
                items=[found], next=None, unreachable=[]
            ),
            contract.GET_DEAD_LETTERS.name: lambda _: contract.FoundDeadLetters(
                letters=[whole], unreachable=[]
            ),
            GET_OVERVIEW.name: lambda _: Overview(services=[], unreachable=[]),
        }
    )

    listed = terminal.run("dead", "list", "--queue", FIRST)
    shown = terminal.run("dead", "show", "letter")

    assert (listed.status, shown.status) == (0, 0)
    _, columns, row = listed.out.splitlines()
    assert row[columns.index("sender") :].startswith(shown_as)
    assert f"sender {shown_as}," in shown.out.replace("\n", " ")


def test_where_the_broker_tells_no_depths_as_many_letters_as_are_shown_are_the_least() -> None:
    terminal = AtTerminal(
        {
            contract.LIST_DEAD_LETTERS.name: lambda _: Gathered[contract.DeadLetter](
                items=[letter(FIRST), letter(FIRST)], next=None, unreachable=[]
            ),
            GET_OVERVIEW.name: lambda _: Overview(services=[], unreachable=[]),
        }
    )

    cut = terminal.run("dead", "list", "--queue", FIRST, "--limit", "2")
    whole = terminal.run("dead", "list", "--queue", FIRST, "--limit", "3")

    assert cut.out.splitlines()[0] == f"{FIRST}: at least 2"
    assert whole.out.splitlines()[0] == f"{FIRST}: 2"


def failing(fault: BaseException, *, at: str) -> AtTerminal:
    """Each of two queues has a letter; the request to this queue fails."""

    def listed(query: contract.ListDeadLettersOf) -> Gathered[contract.DeadLetter]:
        items = [letter(FIRST)] if query.queue == FIRST else []
        items += [letter(SECOND)] if query.queue == SECOND else []
        return Gathered[contract.DeadLetter](items=items, next=None, unreachable=[])

    def removed(command: Any) -> contract.RemovedDeadLetters:
        if command.queue == at:
            raise fault
        return contract.RemovedDeadLetters(removed=[letter(command.queue)], left=[])

    return AtTerminal(
        {
            contract.LIST_DEAD_LETTERS.name: listed,
            contract.REPLAY_DEAD_LETTERS.name: removed,
            contract.DISCARD_DEAD_LETTERS.name: removed,
        }
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
@pytest.mark.parametrize(
    ("command", "says", "member"),
    [(REPLAY, "1 replayed.", "replayed"), (DISCARD, "1 discarded.", "discarded")],
    ids=["replay", "discard"],
)
def test_what_was_removed_is_told_where_a_later_request_fails(
    command: tuple[str, ...], says: str, member: str, fault: errors.BanksideError
) -> None:
    shown = failing(fault, at=SECOND).run(*command)
    as_json = failing(fault, at=SECOND).run(*command, "--json")

    assert (shown.status, as_json.status) == (3, 3)
    assert shown.out == f"{says}\n"
    assert shown.err.startswith("bankside: It went no further: ")
    assert fault.detail in shown.err
    assert [one["queue"] for one in json.loads(as_json.out)[member]] == [FIRST]


@pytest.mark.parametrize(
    ("fault", "ends"),
    [(errors.Unavailable(), 2), (errors.NotFound(), 2), (errors.InternalError(), 3)],
    ids=lambda value: getattr(value, "code", value),
)
def test_a_first_request_that_fails_is_told_as_it_is(
    fault: errors.BanksideError, ends: int
) -> None:
    done = failing(fault, at=FIRST).run(*REPLAY)

    assert (done.status, done.out) == (ends, "")
    assert "It went no further" not in done.err


def test_what_was_removed_is_told_where_it_is_interrupted() -> None:
    done = failing(KeyboardInterrupt(), at=SECOND).run(*REPLAY)

    assert (done.status, done.out) == (130, "1 replayed.\n")
