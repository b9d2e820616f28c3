"""Lists of everything that an API holds, for a reader that compares it with its own books.

A row's position is its number in the order of commits: a reader that keeps the last position misses nothing that is
committed later. Each page is found by an index, so the last one costs as much as the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.operations import Read, Refusal
from services.provider_sandbox.pages import LARGEST_POSITION, Ids, PositionedPage


def plain(row: Row) -> dict[str, object]:
    """The row as it was selected, without its number."""
    return {name: value for name, value in row.items() if name != "sequence"}


class ListQuery(PositionedPage):
    """All rows, or those of some ids, or those of some customers, or the newest; of those also from a position back."""

    id: Ids | None = None
    customer_id: Ids | None = None
    order: Literal["newest"] | None = None
    before: Annotated[int, Field(ge=0, le=LARGEST_POSITION)] = LARGEST_POSITION

    @model_validator(mode="after")
    def _is_one_choice(self) -> Self:
        given = [self.id, self.customer_id, self.order]
        if len(given) - given.count(None) > 1:
            raise ValueError("send one of id, customer_id and order")
        if self.order is not None and "after" in self.model_fields_set:
            raise ValueError("after does not go with order")
        if self.order is None and "before" in self.model_fields_set:
            raise ValueError("before goes with order")
        return self


@dataclass(frozen=True)
class Listing:
    """A list and its statements; None: the list is not read in that way.

    Each gives at most `$1` rows with `sequence`, which becomes `position`, and what `shape` needs.

    | statement | rows |
    |---|---|
    | `page` | after the position `$2`, the oldest first |
    | `newest` | before the position `$2`, the newest first |
    | `by_id`, `by_customer` | as `page`, of the ids or the customer ids `$3` |

    The rows of ids are found first (`AS MATERIALIZED`) and put in order afterwards: with the limit in the same query, a
    plan could walk the whole list in search of them.
    """

    rows: str
    """The name of the rows in the answer."""
    shape: Callable[[Row], dict[str, object]]
    page: str
    newest: str | None = None
    by_id: str | None = None
    by_customer: str | None = None

    async def read(self, connection: Connection, query: ListQuery) -> dict[str, object]:
        found = await self._select(connection, query)
        more = len(found) > query.limit
        page = [{"position": row["sequence"], **self.shape(row)} for row in found[: query.limit]]
        return {self.rows: page, "next": page[-1]["position"] if more else None}

    async def _select(self, connection: Connection, query: ListQuery) -> Sequence[Row]:
        most = query.limit + 1
        if query.order is not None:
            if self.newest is None:
                raise _not_offered("order")
            return await connection.fetch(self.newest, most, query.before)
        if query.id is not None:
            if self.by_id is None:
                raise _not_offered("id")
            return await connection.fetch(self.by_id, most, query.after, query.id)
        if query.customer_id is not None:
            if self.by_customer is None:
                raise _not_offered("customer_id")
            return await connection.fetch(self.by_customer, most, query.after, query.customer_id)
        return await connection.fetch(self.page, most, query.after)


def list_all(name: str, path: str, listing: Listing) -> Read[ListQuery]:
    """The operation that reads a list."""

    async def handle(connection: Connection, _: str, query: ListQuery) -> object:
        return await listing.read(connection, query)

    return Read(name, path, handle, ListQuery)


def _not_offered(parameter: str) -> Refusal:
    return Refusal(400, "invalid", f"{parameter}: this list does not have it.")
