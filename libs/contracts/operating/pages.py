"""What the operations of operators have in common: pages of lists, and the reason of a write.

A list is paged by key: `after` is the `next` of the page before, and means nothing to the caller. Rows that appear or
vanish meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import msgspec
from pydantic import Field, StringConstraints

from libs.contracts import fields as f
from libs.contracts.ids import parse_id
from libs.contracts.model import BrokenRule, Command, Model

LONGEST_REASON = 500

Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON),
    *f.TEXT_RULES,
]
"""Why an operator does it; kept in the audit under the operator's name."""

T = TypeVar("T")


class Order(StrEnum):
    """The order of a list, by the time that it is sorted by."""

    NEWEST = "newest"
    OLDEST = "oldest"


class Place(msgspec.Struct, frozen=True, array_like=True):
    """The last row of a page in a list that is sorted by a time, and by an id where times are equal."""

    at: datetime
    id: str

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def decode(cls, cursor: str) -> Place:
        """Raises ValueError: `encode` did not make it."""
        padded = cursor + "=" * (-len(cursor) % 4)
        try:
            place = msgspec.json.decode(
                base64.b64decode(padded, altchars=b"-_", validate=True), type=cls
            )
            at = place.at.astimezone(UTC)
        except (binascii.Error, msgspec.MsgspecError, UnicodeEncodeError, OverflowError):
            raise ValueError("`after` is the `next` of an earlier page") from None
        # PostgreSQL's text cannot hold NUL.
        if place.at.tzinfo is None or "\0" in place.id:
            raise ValueError("`after` is the `next` of an earlier page")
        return msgspec.structs.replace(place, at=at)


class ListPage(Command):
    """One page of a list."""

    limit: f.LongLimit = 50
    after: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    """The `next` of the page before; without it the list begins."""
    order: Annotated[Order, Field(strict=False)] = Order.NEWEST
    """By time: the newest first, or the oldest."""

    @property
    def place(self) -> Place | None:
        """Where the page begins: after this row."""
        return Place.decode(self.after) if self.after is not None else None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        after = values.get("after")
        if isinstance(after, str):
            try:
                Place.decode(after)
            except ValueError as error:
                return [(("after",), str(error))]
        return []


class Listed(Model, Generic[T]):
    """A page; `next` is the `after` of the page that follows, null at the end."""

    items: list[T]
    """The rows of this page."""
    next: str | None = None
    """The `after` of the page that follows; null at the end."""


class Write(Command):
    """What changes something: `reason` says why."""

    reason: Reason
    """Why; kept in the audit under the operator's name."""


FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)


def edge_of(place: Place | None, order: Order) -> tuple[datetime, UUID]:
    """What all rows of a page come after, in a list that is sorted by a time and a UUID."""
    newest = order is Order.NEWEST
    if place is not None:
        return place.at, parse_id(place.id) or (FIRST_ID if newest else LAST_ID)
    if newest:
        return datetime.max.replace(tzinfo=UTC), LAST_ID
    return datetime.min.replace(tzinfo=UTC), FIRST_ID


def cut(
    rows: Sequence[T],
    limit: int,
    place: Callable[[T], Place],
    *,
    looked_until: Place | None = None,
) -> tuple[Sequence[T], str | None]:
    """A page of rows of which one more than `limit` was read, and its `next`.

    Args:
        looked_until: where reading stopped although it had no more than `limit` rows; None at the end of the rows.
    """
    page = rows[:limit]
    if len(rows) > limit:
        return page, place(page[-1]).encode()
    return page, looked_until.encode() if looked_until is not None else None
