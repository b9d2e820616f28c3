"""Lists of operators' operations, page after page, and what to say of services that do not answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeVar

from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating.pages import Listed, ListPage
from libs.contracts.operating.services import Gathered
from libs.contracts.operation import Operation

MAX_SHOWN = 1000
LARGEST_PAGE = 200

QueryT = TypeVar("QueryT", bound=ListPage)
ItemT = TypeVar("ItemT")
PageT = TypeVar("PageT", bound=Listed[Any])


def list_of(operation: Operation[QueryT, Listed[ItemT]], query: QueryT, limit: int) -> list[ItemT]:
    """The first rows, as many as `--limit` allows; where there are more, standard error says so.

    Raises:
        OperatorError: `limit` is out of its bounds, or as `ask`.
    """
    pages = _pages(operation, query, limit)
    _tell_cut(pages, limit)
    return [item for page in pages for item in page.items]


def first_of(operation: Operation[QueryT, Listed[ItemT]], query: QueryT, limit: int) -> list[ItemT]:
    """The first rows, `limit` at most. Raises OperatorError as `list_of`."""
    return [item for page in _pages(operation, query, limit) for item in page.items]


def gathered_of(
    operation: Operation[QueryT, Gathered[ItemT]],
    query: QueryT,
    limit: int,
    *,
    service: str | None = None,
) -> tuple[list[ItemT], list[str]]:
    """As `list_of` of a list over several services, and the services that did not answer.

    Args:
        service: whose rows alone are asked for; named where there are more.
    """
    pages = _pages(operation, query, limit)
    _tell_cut(pages, limit, service)
    return _gathered(pages)


def first_gathered_of(
    operation: Operation[QueryT, Gathered[ItemT]], query: QueryT, limit: int
) -> tuple[list[ItemT], list[str]]:
    """As `gathered_of`, and standard error says nothing of further rows."""
    return _gathered(_pages(operation, query, limit))


def count_of(rows: Sequence[object], limit: int) -> str:
    """How many there are, for a heading: of a list that `--limit` may have cut off at least as many as it allows."""
    return f"{limit} or more" if len(rows) >= limit else str(len(rows) or "none")


def _gathered(pages: Sequence[Gathered[ItemT]]) -> tuple[list[ItemT], list[str]]:
    silent = dict.fromkeys(service for page in pages for service in page.unreachable)
    return [item for page in pages for item in page.items], [*silent]


def _tell_cut(pages: Sequence[Listed[Any]], limit: int, service: str | None = None) -> None:
    if pages[-1].next is not None:
        of = f" of {service}" if service is not None else ""
        print(f"bankside: there are more{of} than these {limit}: see --limit.", file=sys.stderr)


def tell_unreachable(services: Sequence[str]) -> int:
    """Say on standard error which services did not answer. The exit status: 1 when there are any."""
    for service in services:
        print(f"bankside: {service} does not answer: what it has is not shown.", file=sys.stderr)
    return 1 if services else 0


def _pages(operation: Operation[QueryT, PageT], query: QueryT, limit: int) -> list[PageT]:
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")
    pages: list[PageT] = []
    after: str | None = None
    shown = 0
    while True:
        step = {"limit": min(limit - shown, LARGEST_PAGE), "after": after}
        page = ask(operation, query.model_copy(update=step))
        pages.append(page)
        shown += len(page.items)
        after = page.next
        if after is None or shown >= limit:
            return pages
