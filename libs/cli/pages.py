"""Lists of operators' operations, page after page."""

from __future__ import annotations

from typing import TypeVar

from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating.pages import Listed, ListPage
from libs.contracts.operation import Operation

MAX_SHOWN = 1000
LARGEST_PAGE = 200

QueryT = TypeVar("QueryT", bound=ListPage)
ItemT = TypeVar("ItemT")


def list_of(operation: Operation[QueryT, Listed[ItemT]], query: QueryT, limit: int) -> list[ItemT]:
    """The first rows, `limit` at most. Raises OperatorError: `limit` is out of its bounds, or as `ask`."""
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")
    found: list[ItemT] = []
    after: str | None = None
    while True:
        step = {"limit": min(limit - len(found), LARGEST_PAGE), "after": after}
        page = ask(operation, query.model_copy(update=step))
        found += page.items
        after = page.next
        if after is None or len(found) >= limit:
            return found
