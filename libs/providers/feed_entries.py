"""The entries of a provider's event feed: decoding a page, and describing an entry at fault.

The description of an entry has none of its values but its position and type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

FETCH_SECONDS = 10.0
"""For one page, at most."""
OUTLINE_FIELDS = 50
OUTLINE_DEPTH = 4
NAME_LENGTH = 64
PROBLEM_LENGTH = 500
LARGEST_POSITION = 2**63 - 1


class FeedEntry(Protocol):
    @property
    def position(self) -> int: ...


EntryT = TypeVar("EntryT", bound=FeedEntry)

DecodedT = TypeVar("DecodedT")

Fetch = Callable[[int, int], Awaitable[Sequence[EntryT]]]
"""(after, limit) -> the next entries in order of position; empty at the feed's end. Raises UndecodableEntry."""


@dataclass(frozen=True, slots=True)
class FaultyEntry:
    """The entry that stops a feed.

    Args:
        problem: a sentence.
        outline: its fields and their types, as JSON.
    """

    position: int
    type: str | None
    problem: str
    outline: str | None


class UndecodableEntry(Exception):
    """Raised by a `Fetch` when the next entry is not of the shape that this release knows."""

    def __init__(self, entry: FaultyEntry) -> None:
        super().__init__(f"entry at {entry.position}: {entry.problem}")
        self.entry = entry


def decode_entries(
    items: Sequence[Any], after: int, decode: Callable[[Any], DecodedT]
) -> list[DecodedT]:
    """The entries of a page up to the first one that cannot be decoded, for any reason.

    An entry whose position cannot be read is taken to be at the position after the one before it: nothing else is
    skipped with it.

    Raises:
        UndecodableEntry: the first one cannot be decoded.
    """
    decoded: list[DecodedT] = []
    for item in items:
        try:
            decoded.append(decode(item))
        except Exception as error:
            if decoded:
                break
            raise UndecodableEntry(_faulty(item, after, error)) from error
    return decoded


def _faulty(item: Any, after: int, error: Exception) -> FaultyEntry:
    fields = item if isinstance(item, dict) else {}
    position, kind = fields.get("position"), fields.get("type")
    return FaultyEntry(
        position=position
        if type(position) is int and after < position <= LARGEST_POSITION
        else after + 1,
        type=kind[:NAME_LENGTH] if isinstance(kind, str) and kind.isprintable() else None,
        problem=describe("it cannot be decoded", error),
        outline=json.dumps(_outline(item, OUTLINE_DEPTH)),
    )


def _outline(value: Any, depth: int) -> Any:
    """Names of fields and types of values, in place of the values."""
    match value:
        case dict() if depth:
            return {
                str(name)[:NAME_LENGTH]: _outline(inner, depth - 1)
                for name, inner in islice(value.items(), OUTLINE_FIELDS)
            }
        case list() if depth:
            return [_outline(inner, depth - 1) for inner in value[:1]]
        case _:
            return type(value).__name__


def describe(problem: str, error: BaseException) -> str:
    """A sentence with the kind of the error. Messages of unknown errors may quote the entry: only notes are shown."""
    details = [*getattr(error, "__notes__", ())]
    if type(error).__module__.startswith("msgspec"):
        details.append(re.sub(r"'[^']*'", "'…'", str(error)))
    return ": ".join([problem, type(error).__name__, *details])[:PROBLEM_LENGTH]
