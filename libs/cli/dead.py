"""`bankside dead`: look at dead letters, have them accepted anew by the service that owns the queue, discard them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, escape, one_line, pretty, print_json
from libs.cli.pages import MAX_SHOWN, first_gathered_of, tell_unreachable
from libs.client.errors import OperatorError, UnknownOutcome
from libs.client.operator_client import ask
from libs.contracts.errors import BanksideError
from libs.contracts.operating import dead_letters as contract
from libs.contracts.operating.dead_letters import (
    MOST_AT_ONCE,
    DeadLetter,
    DeadLetterWithBody,
    RemovedDeadLetters,
)
from libs.contracts.operating.overview import GET_OVERVIEW, GetOverview
from libs.contracts.operating.pages import Order
from libs.messaging.topology import dead_queue, dead_queues

app = App(name="dead", help="Look at dead letters, have them accepted anew, discard them.")

Identifiers = Annotated[list[str] | None, Parameter(name="IDENTIFIERS", negative=())]


@app.command(name="list")
def list_letters(*, queue: str | None = None, limit: int = 50, json: Flag = False) -> int:
    """List dead letters, the oldest of each queue first. They stay where they are.

    Such as `bankside dead list --queue payments.commands.dead`.

    Args:
        queue: Only those of this queue, given with or without `.dead`.
        limit: How many of each queue to show at most.
        json: Print one JSON document.
    """
    names = _queues(queue)
    letters, unreachable = _letters(names, limit)
    counts = _counts(names, letters)
    if json:
        print_json(
            {
                "queues": [
                    {
                        "queue": name,
                        "count": counts[name],
                        "letters": [_summary(item) for item in letters[name]],
                    }
                    for name in letters
                ]
            }
        )
        return tell_unreachable(unreachable)
    out, now = console(), datetime.now(UTC)
    for name, shown in letters.items():
        count = counts[name]
        if not count:
            out.print(f"{name}: none")
            continue
        out.print(f"[bold]{name}[/]: {count}" + (f", the first {limit}" if count > limit else ""))
        if shown:
            _print_aligned([_COLUMNS, *(_row(letter, now) for letter in shown)])
    return tell_unreachable(unreachable)


@app.command
def show(identifier: str, /, *, queue: str | None = None, json: Flag = False) -> int:
    """Show a dead letter. Its sensitive fields are sealed. It stays where it is.

    Such as `bankside dead show MESSAGE_ID`.

    Args:
        identifier: The id of a letter or of a command.
        queue: Look only in this queue.
        json: Print one JSON document.
    """
    names = _queues(queue)
    found = ask(
        contract.GET_DEAD_LETTERS,
        contract.FindDeadLettersOf.model_validate(
            {"letter_id": identifier}
            | ({"queue": queue, "service": _owner(names[0])} if queue is not None else {})
        ),
    )
    if json:
        print_json({"letters": [_summary(item) | {"body": _body(item)} for item in found.letters]})
        return tell_unreachable(found.unreachable)
    out, now = console(), datetime.now(UTC)
    for letter in found.letters:
        out.print(
            f"[bold]{escape(letter.id)}[/] in {letter.queue}, died because of {escape(letter.reason or '?')}, "
            f"dead for {age(letter.died_at, now)}, sent {age(letter.sent_at, now)} ago"
        )
        if letter.because is not None:
            out.print(escape(letter.because))
        out.print(pretty(letter.body.encode()))
    return tell_unreachable(found.unreachable)


@app.command
def replay(
    identifiers: Identifiers = None,
    /,
    *,
    reason: str,
    all_letters: Annotated[bool, Parameter(name="--all", negative=())] = False,
    queue: str | None = None,
    apply_again: Flag = False,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have the service that owns the queue accept dead letters anew.

    A command that is carried out now may surprise a caller who has long since sent it anew under another
    Idempotency-Key: so this shows how old each letter is and asks. A letter that cannot be read, or whose sender may
    not send it, stays; so does a command that was sent more than a day ago, without --apply-again: had it been sent
    again under its own key and carried out, that would be forgotten.

    Such as `bankside dead replay MESSAGE_ID --reason "all replicas have the release"`.

    Args:
        identifiers: Ids of letters or of commands.
        reason: Why, such as what was mended.
        all_letters: All letters, of --queue or of every queue: 1,000 of a queue at a time.
        queue: Only letters of this queue.
        apply_again: Also commands that were sent more than a day ago: find out first whether they were carried out.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    wanted = set(identifiers or ())
    if bool(wanted) == all_letters:
        raise OperatorError("Say which letters: ids as `bankside dead list` shows them, or --all.")
    refuse_to_ask_in_json(yes=yes, json=json)
    names, reason = _queues(queue), reason_of(reason)
    done = _Done()
    unreachable: list[str] = []
    goes_on = True
    # Where it is not wanted it is not said: a gateway of the release before does not know it.
    again = {"apply_again": True} if apply_again else {}
    with _shown_also_when_it_fails(done, lambda: _show_replayed(done, json=json)):
        while goes_on:
            letters, unreachable = _letters(names, MAX_SHOWN)
            found = _chosen(letters, wanted, unreachable)
            found = [letter for letter in found if not done.has_left(letter)]
            question = "Their callers may have sent anew since. Replay these?"
            if found and not yes and not _agreed(found, question):
                console().print(
                    f"{len(done.removed)} replayed." if done.removed else "Nothing was replayed."
                )
                return 1
            before = len(done.removed)
            for one in _by_queue(found, reason):
                command = contract.ReplayDeadLettersOf.model_validate(one | again)
                done.add(ask(contract.REPLAY_DEAD_LETTERS, command))
            # Of a queue with more letters than are looked at once, the next ones have come to its front.
            is_more = any(len(of_queue) >= MAX_SHOWN for of_queue in letters.values())
            goes_on = all_letters and is_more and len(done.removed) > before
    _show_replayed(done, json=json)
    return 1 if tell_unreachable(unreachable) or done.left else 0


@app.command
def discard(
    identifiers: Identifiers = None,
    /,
    *,
    reason: str,
    queue: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Remove dead letters for good. Nothing is done about what they ask for; reason and name stay in the audit.

    Such as `bankside dead discard MESSAGE_ID --reason "sent by hand, as a test"`.

    Args:
        identifiers: Ids of letters or of commands.
        reason: Why they are not needed, and what was done about them.
        queue: Only letters of this queue.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    wanted = set(identifiers or ())
    if not wanted:
        raise OperatorError("Say which letters: ids as `bankside dead list` shows them.")
    refuse_to_ask_in_json(yes=yes, json=json)
    names, reason = _queues(queue), reason_of(reason)
    letters, unreachable = _letters(names, MAX_SHOWN)
    found = _chosen(letters, wanted, unreachable)
    if not yes and not _agreed(found, "Remove these for good?"):
        console().print("Nothing was discarded.")
        return 1
    done = _Done()
    with _shown_also_when_it_fails(done, lambda: _show_discarded(done, json=json)):
        for one in _by_queue(found, reason):
            command = contract.RemoveDeadLettersOf.model_validate(one)
            done.add(ask(contract.DISCARD_DEAD_LETTERS, command))
    _show_discarded(done, json=json)
    return tell_unreachable(unreachable)


class _Done:
    """What was removed, and what stays."""

    def __init__(self) -> None:
        self.removed: list[dict[str, Any]] = []
        self.left: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, done: RemovedDeadLetters) -> None:
        self.removed += [_summary(letter) for letter in done.removed]
        self.left |= {
            (letter.queue, letter.id): _summary(letter) | {"because": letter.why}
            for letter in done.left
        }

    def has_left(self, letter: DeadLetter) -> bool:
        return (letter.queue, letter.id) in self.left


@contextmanager
def _shown_also_when_it_fails(done: _Done, show: Callable[[], None]) -> Iterator[None]:
    """Show what earlier requests of the block have removed where a later one fails.

    Raises:
        UnknownOutcome: a request failed after letters were removed. Where none were, its error is raised as it is.
    """
    try:
        yield
    except (OperatorError, BanksideError, KeyboardInterrupt) as error:
        if not done.removed:
            raise
        show()
        if isinstance(error, KeyboardInterrupt):
            raise
        said = f"{error.detail} ({error.code})" if isinstance(error, BanksideError) else error
        raise UnknownOutcome(f"It went no further: {said}") from None


def _show_replayed(done: _Done, *, json: bool) -> None:
    if json:
        print_json({"replayed": [*done.removed], "left": [*done.left.values()]})
        return
    console().print(
        f"{len(done.removed)} replayed."
        if done.removed or done.left
        else "There is no dead letter."
    )
    for letter in done.left.values():
        console().print(f"{escape(letter['id'])} stays: {escape(letter['because'])}.")


def _show_discarded(done: _Done, *, json: bool) -> None:
    if json:
        print_json({"discarded": [*done.removed]})
    else:
        console().print(f"{len(done.removed)} discarded.")


def _by_queue(letters: Sequence[DeadLetter], reason: str) -> Iterator[dict[str, Any]]:
    """What the operator was shown, queue by queue: the members of `RemoveDeadLettersOf`."""
    for queue in dict.fromkeys(letter.queue for letter in letters):
        ids = [*dict.fromkeys(letter.id for letter in letters if letter.queue == queue)]
        for begin in range(0, len(ids), MOST_AT_ONCE):
            yield {
                "service": _owner(queue),
                "queue": queue,
                "letter_ids": ids[begin : begin + MOST_AT_ONCE],
                "reason": reason,
            }


def _letters(names: Sequence[str], limit: int) -> tuple[dict[str, list[DeadLetter]], list[str]]:
    """By queue, the oldest first; and the services that did not answer, whose queues are not among them."""
    found: dict[str, list[DeadLetter]] = {}
    silent: list[str] = []
    for name in names:
        query = contract.ListDeadLettersOf.model_validate(
            {"service": _owner(name), "queue": name, "order": Order.OLDEST}
        )
        items, unreachable = first_gathered_of(contract.LIST_DEAD_LETTERS, query, limit)
        if unreachable:
            silent += [service for service in unreachable if service not in silent]
        else:
            found[name] = items
    return found, silent


def _counts(names: Sequence[str], letters: dict[str, list[DeadLetter]]) -> dict[str, int]:
    """As the services count them; at least as many as they show."""
    services = ask(GET_OVERVIEW, GetOverview()).services
    depths = {depth.queue: depth.messages for service in services for depth in service.queues or ()}
    return {name: max(depths.get(name, 0), len(letters.get(name, ()))) for name in names}


def _chosen(
    letters: dict[str, list[DeadLetter]], wanted: set[str], unreachable: Sequence[str]
) -> list[DeadLetter]:
    """Those wanted, or all of them. Raises OperatorError: one is not there."""
    every = [letter for of_queue in letters.values() for letter in of_queue]
    for identifier in sorted(wanted):
        if not any(identifier in (letter.id, letter.command_id) for letter in every):
            missing = f" ({', '.join(unreachable)} did not answer)" if unreachable else ""
            raise OperatorError(
                f"There is no dead letter {identifier!r} among the first {MAX_SHOWN} of each queue{missing}."
            )
    return [
        letter
        for letter in every
        if not wanted or letter.id in wanted or letter.command_id in wanted
    ]


_COLUMNS = ("id", "operation or event", "command", "died because", "dead for", "age")


def _row(letter: DeadLetter, now: datetime) -> tuple[str, ...]:
    return (
        letter.id,
        _operation(letter),
        letter.command_id or "-",
        letter.reason or "?",
        age(letter.died_at, now),
        age(letter.sent_at, now),
    )


def _operation(letter: DeadLetter) -> str:
    """What a command was to do, or the type of an event."""
    return letter.operation or letter.event_type or "cannot be read"


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """In columns, the first row dim. Nothing is cut off: ids are there to be copied."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = console()
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.print("  " + "  ".join(cells).rstrip(), style="" if number else "dim", markup=False)


def _queues(wanted: str | None) -> Sequence[str]:
    """The one wanted, else all."""
    known = dead_queues()
    if wanted is None:
        return known
    for name in known:
        if wanted in (name, name.removesuffix(dead_queue(""))):
            return (name,)
    raise OperatorError(
        f"There is no queue {wanted!r} with dead letters; there are: {', '.join(known)}."
    )


def _owner(queue: str) -> str:
    """The service that owns a queue."""
    return queue.partition(".")[0]


def _agreed(letters: Sequence[DeadLetter], question: str) -> bool:
    require_terminal()
    out, now = console(), datetime.now(UTC)
    for letter in letters:
        out.print(
            f"  {escape(letter.id)}  {escape(_operation(letter))}  sent [bold]{age(letter.sent_at, now)}[/] ago, "
            f"dead for {age(letter.died_at, now)}"
        )
    return agrees(question)


def _summary(letter: DeadLetter) -> dict[str, Any]:
    return {
        "queue": letter.queue,
        "id": letter.id,
        "command_id": letter.command_id,
        "operation": letter.operation,
        "event_type": letter.event_type,
        "sender": letter.sender,
        "tenant": letter.tenant,
        "reason": letter.reason,
        "because": letter.because,
        "sent_at": letter.sent_at,
        "died_at": letter.died_at,
    }


def _body(letter: DeadLetterWithBody) -> Any:
    """JSON as it is; anything else as text."""
    try:
        msgspec.json.decode(letter.body)
    except msgspec.DecodeError:
        return letter.body
    return msgspec.Raw(letter.body.encode())
