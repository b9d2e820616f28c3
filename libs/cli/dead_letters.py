"""Dead letters as `bankside dead` shows them, and as its JSON has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from libs.cli.output import age, console, escape, one_line, pretty
from libs.contracts.operating.dead_letters import DeadLetter, DeadLetterWithBody

_COLUMNS = ("id", "operation or event", "command", "sender", "died because", "dead for", "age")
_NO_SENDER = "not known"


def print_table(letters: Sequence[DeadLetter], now: datetime) -> None:
    """A row for each. Nothing is cut off: ids are there to be copied."""
    _print_aligned([_COLUMNS, *(_row(letter, now) for letter in letters)])


def print_whole(letter: DeadLetterWithBody, now: datetime) -> None:
    """One letter with its body."""
    out = console()
    out.print(
        f"[bold]{escape(letter.id)}[/] in {letter.queue}, sender {escape(letter.sender or _NO_SENDER)}, "
        f"died because of {escape(letter.reason or '?')}, "
        f"dead for {age(letter.died_at, now)}, sent {age(letter.sent_at, now)} ago"
    )
    if letter.because is not None:
        out.print(escape(letter.because))
    out.print(pretty(letter.body.encode()))


def _row(letter: DeadLetter, now: datetime) -> tuple[str, ...]:
    return (
        letter.id,
        operation_of(letter),
        letter.command_id or "-",
        letter.sender or _NO_SENDER,
        letter.reason or "?",
        age(letter.died_at, now),
        age(letter.sent_at, now),
    )


def operation_of(letter: DeadLetter) -> str:
    """What a command was to do, or the type of an event."""
    return letter.operation or letter.event_type or "cannot be read"


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """In columns, the first row dim."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = console()
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.print("  " + "  ".join(cells).rstrip(), style="" if number else "dim", markup=False)


def summary(letter: DeadLetter) -> dict[str, Any]:
    """The letter in JSON, without its body."""
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


def body_of(letter: DeadLetterWithBody) -> Any:
    """Its body in JSON: JSON as it is, anything else as text."""
    try:
        msgspec.json.decode(letter.body)
    except msgspec.DecodeError:
        return letter.body
    return msgspec.Raw(letter.body.encode())
