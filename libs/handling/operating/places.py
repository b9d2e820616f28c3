"""Places in pages as the tables need them. A cursor that no page gave is the caller's mistake."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from libs.contracts.errors import Invalid
from libs.contracts.operating.pages import Place


def not_a_place(part: Literal["query", "body"] = "query") -> Invalid:
    """The error for an `after`, in this part of the request, that is not the `next` of an earlier page."""
    return Invalid(
        [
            {
                "loc": [part, "after"],
                "type": "value_error",
                "msg": "`after` is the `next` of an earlier page",
                "ctx": {},
            }
        ]
    )


def uuid_of(place: Place) -> UUID:
    """Raises Invalid."""
    try:
        return UUID(place.id)
    except ValueError:
        raise not_a_place() from None


def number_of(place: Place) -> int:
    """Raises Invalid."""
    if not (place.id.isascii() and place.id.isdigit() and len(place.id) < 19):
        raise not_a_place()
    return int(place.id)
