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


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """Up to where a feed was applied.

    Args:
        position: grows with each entry: the provider's own number of the last one, or how many were applied.
        provider_cursor: where the provider's feed goes on, in the words of its adapter, which alone reads it; None at
            the feed's begin, and always where the position says it.
    """

    position: int
    provider_cursor: str | None = None


class FeedEntry(Protocol):
    @property
    def position(self) -> int: ...

    @property
    def provider_cursor(self) -> str | None:
        """That of the cursor, once this entry is applied."""
        ...

    @property
    def event_id(self) -> str | None:
        """The provider's id of the entry, of which a second delivery has no effect; None where the position is it."""
        ...


EntryT = TypeVar("EntryT", bound=FeedEntry)

DecodedT = TypeVar("DecodedT")

Fetch = Callable[[FeedCursor, int], Awaitable[Sequence[EntryT]]]
"""(after, limit) -> the next entries in order of position; empty at the feed's end. Raises UndecodableEntry."""


@dataclass(frozen=True, slots=True)
class FaultyEntry:
    """The entry that stops a feed.

    Args:
        problem: a sentence.
        outline: its fields and their types, as JSON.
        provider_cursor, event_id: as of any entry.
    """

    position: int
    type: str | None
    problem: str
    outline: str | None
    provider_cursor: str | None = None
    event_id: str | None = None


class UndecodableEntry(Exception):
    """Raised by a `Fetch` when the next entry is not of the shape that this release knows."""

    def __init__(self, entry: FaultyEntry) -> None:
        super().__init__(f"entry at {entry.position}: {entry.problem}")
        self.entry = entry


@dataclass(frozen=True, slots=True)
class Place:
    """What a provider's page says of an entry besides its content.

    Args:
        type: None when it cannot be read.
    """

    position: int
    type: str | None
    provider_cursor: str | None = None
    event_id: str | None = None


Locate = Callable[[Any, int], Place]
"""(item, position of the entry before it) -> its place, also of an item that cannot be decoded. Raises nothing."""


def decode_entries(
    items: Sequence[Any],
    after: int,
    decode: Callable[[Any, Place], DecodedT],
    locate: Locate,
) -> list[DecodedT]:
    """The entries of a page up to the first one that cannot be decoded, for any reason.

    Args:
        after: the position of the entry before the first one.

    Raises:
        UndecodableEntry: the first one cannot be decoded.
    """
    decoded: list[DecodedT] = []
    for item in items:
        place = locate(item, after)
        try:
            decoded.append(decode(item, place))
        except Exception as error:
            if decoded:
                break
            raise UndecodableEntry(faulty_entry(item, place, error)) from error
        after = place.position
    return decoded


def shown_type(value: Any) -> str | None:
    """What an entry gives as its type, as far as it can be shown to an operator."""
    return value[:NAME_LENGTH] if isinstance(value, str) and value.isprintable() else None


def faulty_entry(item: Any, place: Place, error: Exception) -> FaultyEntry:
    """The description of an entry that this error keeps from being read."""
    return FaultyEntry(
        position=place.position,
        type=place.type,
        problem=describe("it cannot be decoded", error),
        outline=json.dumps(_outline(item, OUTLINE_DEPTH)),
        provider_cursor=place.provider_cursor,
        event_id=place.event_id,
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
