"""What `bankside dead replay` and `dead discard` have removed, and which letters stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from libs.cli.dead_letters import summary
from libs.cli.output import console, escape, print_json
from libs.client.errors import OperatorError, UnknownOutcome
from libs.contracts.errors import BanksideError
from libs.contracts.operating.dead_letters import DeadLetter, RemovedDeadLetters


class RemovedLetters:
    """What was removed, and what stays."""

    def __init__(self) -> None:
        self.removed: list[dict[str, Any]] = []
        self.left: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, done: RemovedDeadLetters) -> None:
        self.removed += [summary(letter) for letter in done.removed]
        self.left |= {
            (letter.queue, letter.id): summary(letter) | {"because": letter.why}
            for letter in done.left
        }

    def has_left(self, letter: DeadLetter) -> bool:
        return (letter.queue, letter.id) in self.left


@contextmanager
def shown_also_when_it_fails(done: RemovedLetters, show: Callable[[], None]) -> Iterator[None]:
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


def show_replayed(done: RemovedLetters, *, json: bool) -> None:
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


def show_discarded(done: RemovedLetters, *, json: bool) -> None:
    if json:
        print_json({"discarded": [*done.removed]})
    else:
        console().print(f"{len(done.removed)} discarded.")
