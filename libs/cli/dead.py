"""`bankside dead`: look at dead letters, have them accepted anew by the service that owns the queue, discard them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import App, Parameter

from libs.cli.dead_letters import body_of, operation_of, print_table, print_whole, summary
from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import MAX_SHOWN, first_gathered_of, tell_unreachable
from libs.cli.removed_letters import (
    RemovedLetters,
    show_discarded,
    show_replayed,
    shown_also_when_it_fails,
)
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating import dead_letters as contract
from libs.contracts.operating.dead_letters import MOST_AT_ONCE, DeadLetter
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
    depths = _depths()
    counts = {name: max(depths.get(name, 0), len(shown)) for name, shown in letters.items()}
    if json:
        print_json(
            {
                "queues": [
                    {
                        "queue": name,
                        "count": counts[name],
                        "letters": [summary(item) for item in letters[name]],
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
        if name not in depths and count == limit:
            out.print(f"[bold]{name}[/]: at least {count}")
        else:
            out.print(
                f"[bold]{name}[/]: {count}" + (f", the first {limit}" if count > limit else "")
            )
        if shown:
            print_table(shown, now)
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
        print_json({"letters": [summary(item) | {"body": body_of(item)} for item in found.letters]})
        return tell_unreachable(found.unreachable)
    now = datetime.now(UTC)
    for letter in found.letters:
        print_whole(letter, now)
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
    done = RemovedLetters()
    unreachable: list[str] = []
    goes_on = True
    # Left out where it is false: an older gateway refuses fields that it does not know.
    again = {"apply_again": True} if apply_again else {}
    with shown_also_when_it_fails(done, lambda: show_replayed(done, json=json)):
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
    show_replayed(done, json=json)
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
    done = RemovedLetters()
    with shown_also_when_it_fails(done, lambda: show_discarded(done, json=json)):
        for one in _by_queue(found, reason):
            command = contract.RemoveDeadLettersOf.model_validate(one)
            done.add(ask(contract.DISCARD_DEAD_LETTERS, command))
    show_discarded(done, json=json)
    return tell_unreachable(unreachable)


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


def _depths() -> dict[str, int]:
    """By queue; without those of services of which the broker does not tell them."""
    services = ask(GET_OVERVIEW, GetOverview()).services
    return {depth.queue: depth.messages for service in services for depth in service.queues or ()}


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
            f"  {escape(letter.id)}  {escape(operation_of(letter))}  sent [bold]{age(letter.sent_at, now)}[/] ago, "
            f"dead for {age(letter.died_at, now)}"
        )
    return agrees(question)
