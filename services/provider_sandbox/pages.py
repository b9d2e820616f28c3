"""Pages of a list: how many, and from where."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from services.provider_sandbox.operations import Query, Refusal

LARGEST_LIMIT = 200
LARGEST_POSITION = 2**63 - 1

Limit = Annotated[int, Field(ge=1, le=LARGEST_LIMIT)]
PageNumber = Annotated[int, Field(ge=1, le=10**9)]


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


Ids = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1, max_length=100)]
"""A parameter that may be repeated."""


class CursorPage(Query):
    """A list that is read with cursors: each is where the page before it ended."""

    limit: Limit = 50
    cursor: str | None = None


class NumberedPage(Query):
    limit: Limit = 50
    page: PageNumber = 1

    def skipped(self, limit: int) -> int:
        """How many come before the page, if pages have this many."""
        return (self.page - 1) * limit


class PositionedPage(Query):
    """A list that is read from the oldest row to the newest. The cursor is the position of the last row read."""

    after: Annotated[int, Field(ge=0, le=LARGEST_POSITION)] = 0
    limit: Annotated[int, Field(ge=1, le=500)] = 100


def read_cursor(cursor: str | None, pattern: str) -> tuple[str, ...] | None:
    """The parts of a cursor that was given out: the groups of its pattern. None for the first page."""
    if cursor is None:
        return None
    match = re.fullmatch(pattern, cursor, re.ASCII)
    if match is None:
        raise Refusal(400, "invalid", "cursor: not one that was given out.")
    return match.groups()
