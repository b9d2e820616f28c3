"""`bankside dead`: look at dead letters and have them accepted anew, each as the service that owns its queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from importlib.metadata import entry_points
from itertools import groupby
from typing import Annotated, Any, TypeVar

import msgspec
from cyclopts import App, Parameter
from rich.markup import escape

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.decisions import Flag, agrees, refuse_to_ask_in_json, require_terminal
from libs.cli.output import age, console, pretty, print_json
from libs.client import settings
from libs.client.errors import OperatorError
from libs.handling.replaying import REPLAY, AcceptAnew
from libs.messaging.broker import BROKER_ERRORS
from libs.messaging.dead_letters import (
    MAX_LOOKED_AT,
    DeadLetter,
    DeadLetters,
    Removed,
    open_dead_letters,
)
from libs.messaging.topology import dead_queue, dead_queues
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.secret_sources import is_set
from libs.tls import ca_file_setting

app = App(name="dead", help="Look at dead letters and have them accepted anew.")

T = TypeVar("T")


@app.command(name="list")
def list_letters(*, queue: str | None = None, limit: int = 50, json: Flag = False) -> int:
    """List dead letters, the oldest of each queue first. They stay where they are.

    Args:
        queue: Only those of this queue, given with or without `.dead`.
        limit: Show at most so many of each queue.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_LOOKED_AT:
        raise OperatorError(f"--limit is 1 to {MAX_LOOKED_AT}.")
    names = _queues(queue)

    async def look(letters: DeadLetters, name: str) -> tuple[str, int, list[DeadLetter]]:
        shown = await letters.look(name, limit)
        return name, await letters.count(name), shown

    found = _with_letters(names, look)
    now = datetime.now(UTC)
    if json:
        print_json(
            {
                "queues": [
                    {"queue": name, "count": count, "letters": [_summary(item) for item in shown]}
                    for name, count, shown in found
                ]
            }
        )
        return 0
    out = console()
    for name, count, shown in found:
        if not count:
            out.print(f"{name}: none")
            continue
        out.print(f"[bold]{name}[/]: {count}" + (f", the first {limit}" if count > limit else ""))
        if shown:
            _print_aligned([_COLUMNS, *(_row(letter, now) for letter in shown)])
    return 0


@app.command
def show(identifier: str, /, *, queue: str | None = None, json: Flag = False) -> int:
    """Show a dead letter. Its sensitive fields are sealed. It stays where it is.

    Args:
        identifier: The id of a letter or of a command.
        queue: Look only in this queue.
        json: Print one JSON document.
    """
    names = _queues(queue)
    found = _found([one for one in _letters(names) if one.has_id(identifier)], identifier)
    if json:
        print_json({"letters": [_summary(item) | {"body": _body(item)} for item in found]})
        return 0
    out, now = console(), datetime.now(UTC)
    for letter in found:
        out.print(
            f"[bold]{letter.message_id}[/] in {letter.queue}, died because of {letter.reason or '?'}, "
            f"dead for {age(letter.died_at, now)}, sent {age(letter.sent_at, now)} ago"
        )
        out.print(pretty(letter.body))
    return 0


@app.command
def replay(
    identifiers: Annotated[list[str] | None, Parameter(name="IDENTIFIERS", negative=())] = None,
    /,
    *,
    all_letters: Annotated[bool, Parameter(name="--all", negative=())] = False,
    queue: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have the service that owns the queue accept dead letters anew.

    A command that is carried out now may surprise a caller who has long since sent it anew under another
    Idempotency-Key: so this shows how old each letter is and asks. A letter that cannot be read, or whose sender may
    not send it, stays.

    Args:
        identifiers: Ids of letters or of commands.
        all_letters: All letters, of --queue or of every queue: 1,000 of a queue at a time.
        queue: Only letters of this queue.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    wanted = set(identifiers or ())
    if bool(wanted) == all_letters:
        raise OperatorError("Say which letters: ids as `bankside dead list` shows them, or --all.")
    refuse_to_ask_in_json(yes=yes, json=json)
    names = _queues(queue)
    accepted: list[dict[str, Any]] = []
    left: dict[tuple[str, str], dict[str, Any]] = {}
    goes_on = True
    while goes_on:
        letters = _letters(names)
        found = [item for item in letters if all_letters or any(map(item.has_id, wanted))]
        for identifier in sorted(wanted):
            _found([letter for letter in found if letter.has_id(identifier)], identifier)
        found = [letter for letter in found if _place(letter) not in left]
        if found and not yes and not _agreed(found):
            console().print(f"{len(accepted)} replayed." if accepted else "Nothing was replayed.")
            return 1
        done = _replay_shown(found)
        accepted += map(_summary, done.removed)
        left |= {_place(one): _summary(one) | {"because": why} for one, why in done.left}
        # Of a queue with more letters than are looked at once, the next ones have come to its front.
        is_more = (
            max(Counter(letter.queue for letter in letters).values(), default=0) >= MAX_LOOKED_AT
        )
        goes_on = all_letters and is_more and bool(done.removed)
    if json:
        print_json({"replayed": accepted, "left": [*left.values()]})
    else:
        console().print(
            f"{len(accepted)} replayed." if accepted or left else "There is no dead letter."
        )
        for letter in left.values():
            console().print(f"{letter['id']} stays: {escape(letter['because'])}.")
    return 1 if left else 0


_COLUMNS = ("id", "operation or event", "command", "died because", "dead for", "age")


def _row(letter: DeadLetter, now: datetime) -> tuple[str, ...]:
    envelope = letter.envelope
    return (
        letter.message_id,
        _operation(letter),
        envelope.id if envelope else "-",
        letter.reason or "?",
        age(letter.died_at, now),
        age(letter.sent_at, now),
    )


def _operation(letter: DeadLetter) -> str:
    """What a command was to do, or the type of an event."""
    if letter.envelope is not None:
        return letter.envelope.operation
    return letter.event_type or "cannot be read"


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """In columns, the first row dim. Nothing is cut off: ids are there to be copied."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = console()
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.print("  " + "  ".join(cells).rstrip(), style="" if number else "dim", markup=False)


def _queues(wanted: str | None) -> Sequence[str]:
    """The one wanted, else all those of the services as which the broker can be asked from here."""
    known = dead_queues()
    if wanted is None:
        reached = [name for name in known if is_set(settings.amqp_variable(_owner(name)))]
        if not reached:
            variables = dict.fromkeys(settings.amqp_variable(_owner(name)) for name in known)
            raise OperatorError(f"Set {' or '.join(variables)}, or start the stack (make up).")
        return reached
    for name in known:
        if wanted in (name, name.removesuffix(dead_queue(""))):
            return (name,)
    raise OperatorError(
        f"There is no queue {wanted!r} with dead letters; there are: {', '.join(known)}."
    )


def _owner(queue: str) -> str:
    """The service that owns a queue."""
    return queue.partition(".")[0]


def _opened(service: str) -> AbstractAsyncContextManager[DeadLetters]:
    return open_dead_letters(settings.amqp_url(service), ca_file_setting("AMQP", service.upper()))


def _letters(names: Sequence[str]) -> list[DeadLetter]:
    async def look(letters: DeadLetters, name: str) -> list[DeadLetter]:
        return await letters.look(name, MAX_LOOKED_AT)

    return [letter for found in _with_letters(names, look) for letter in found]


def _with_letters(
    names: Sequence[str], work: Callable[[DeadLetters, str], Awaitable[T]]
) -> list[T]:
    """What `work` makes of each queue, asked as the service that owns it."""

    async def run() -> list[T]:
        found = []
        for service, queues in groupby(names, _owner):
            async with _opened(service) as letters:
                found += [await work(letters, queue) for queue in queues]
        return found

    try:
        return asyncio.run(run())
    except BROKER_ERRORS as error:
        raise _unreachable(error) from None


def _place(letter: DeadLetter) -> tuple[str, str]:
    return letter.queue, letter.message_id


def _replay_shown(found: Sequence[DeadLetter]) -> Removed:
    """Replay what the operator was shown, queue by queue."""
    shown = {*map(_place, found)}
    together = Removed([], [])
    for name in dict.fromkeys(letter.queue for letter in found):
        done = _replay(name, lambda item: _place(item) in shown)
        together.removed.extend(done.removed)
        together.left.extend(done.left)
    return together


def _replay(queue: str, wanted: Callable[[DeadLetter], bool]) -> Removed:
    service, alive = _owner(queue), queue.removesuffix(dead_queue(""))
    (entry,) = entry_points(group=REPLAY, name=alive)
    accept_anew: AcceptAnew = entry.load()

    async def work(database: Database) -> Removed:
        async def accept(letter: DeadLetter) -> None:
            try:
                await accept_anew(database, letter)
                # A crash in between leaves the letter, so that it is replayed and recorded again.
                async with database.transaction() as connection:
                    await record(
                        connection,
                        "dead.replay",
                        queue=queue,
                        message_id=letter.message_id,
                        command_id=letter.envelope.id if letter.envelope else None,
                    )
            except Exception as error:
                if not is_away(error):
                    raise
                raise OperatorError(
                    f"The database of {service} cannot be reached: the letters stay."
                ) from error

        try:
            async with _opened(service) as letters:
                return await letters.remove(queue, wanted, accept)
        except BROKER_ERRORS as error:
            raise _unreachable(error) from None

    return with_database(service, work)


def _unreachable(error: BaseException) -> OperatorError:
    return OperatorError(
        f"The broker cannot be reached ({type(error).__name__}): is the stack up (make status)?"
    )


def _found(letters: list[DeadLetter], identifier: str) -> list[DeadLetter]:
    if not letters:
        raise OperatorError(
            f"There is no dead letter {identifier!r} among the first {MAX_LOOKED_AT} of each queue."
        )
    return letters


def _agreed(letters: list[DeadLetter]) -> bool:
    require_terminal()
    out, now = console(), datetime.now(UTC)
    for letter in letters:
        out.print(
            f"  {letter.message_id}  {escape(_operation(letter))}  sent [bold]{age(letter.sent_at, now)}[/] ago, "
            f"dead for {age(letter.died_at, now)}"
        )
    return agrees("Their callers may have sent anew since. Replay these?")


def _summary(letter: DeadLetter) -> dict[str, Any]:
    envelope = letter.envelope
    return {
        "queue": letter.queue,
        "id": letter.message_id,
        "command_id": envelope.id if envelope else None,
        "operation": envelope.operation if envelope else None,
        "event_type": letter.event_type,
        "sender": letter.sender,
        "tenant": envelope.principal.tenant if envelope else None,
        "reason": letter.reason,
        "sent_at": letter.sent_at,
        "died_at": letter.died_at,
    }


def _body(letter: DeadLetter) -> Any:
    """The envelope as JSON; anything else as text."""
    if letter.envelope is None:
        return letter.body.decode("utf-8", "replace")
    return msgspec.Raw(letter.body)
