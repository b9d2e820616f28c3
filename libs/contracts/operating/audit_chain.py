"""The chain of an audit: each row has a SHA-256 over the row before it, its day, its number and its entry.

A row that was changed, removed or put in between by any means breaks the chain. Rows cut off at the end leave a whole
chain behind: its head is compared with one that was logged (`audit_head`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date

BEGINNING = bytes(32)
"""What stands in the first row for the hash of the row before it."""


@dataclass(frozen=True, slots=True)
class Row:
    day: date
    number: int
    entry: str
    previous: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The last row: what a later look at the audit must still find."""

    day: date
    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.day}:{self.number}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Raises ValueError."""
        day, _, rest = text.partition(":")
        number, _, hash_ = rest.partition(":")
        return cls(date.fromisoformat(day), int(number), bytes.fromhex(hash_))


class BrokenChain(Exception):
    """The message names the first row that is not as it was written, or is missing."""


class Chain:
    """Computes the chain anew, row after row.

    Args:
        before: the last row before the first one to follow; None when there is none.
        from_beginning: that the audit begins with the first one to follow; otherwise earlier days may have been
            archived.
    """

    def __init__(self, before: Head | None = None, *, from_beginning: bool = True) -> None:
        self.head = before
        self._from_beginning = from_beginning

    def follow(self, row: Row) -> None:
        """Raises BrokenChain."""
        head = self.head
        expected = head.number + 1 if head is not None and row.day == head.day else 1
        if row.number != expected:
            raise BrokenChain(f"rows are missing before {row.day}:{row.number}")
        if head is None and self._from_beginning and row.previous != BEGINNING:
            raise BrokenChain(f"{row.day} is not the first day: what was before is missing")
        if head is not None and row.previous != head.hash:
            raise BrokenChain(f"{row.day}:{row.number} does not follow the row before it")
        if row.hash != chained(row.previous, row.day, row.number, row.entry):
            raise BrokenChain(f"{row.day}:{row.number} was changed")
        self.head = Head(row.day, row.number, row.hash)


def chained(previous: bytes, day: date, number: int, entry: str) -> bytes:
    """The hash of a row, given that of the row before it."""
    return hashlib.sha256(previous + f"{day}:{number}:{entry}".encode()).digest()
