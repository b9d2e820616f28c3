"""Keyset pagination: the rows of a page come after an edge, in the order of a key.

`libs.contracts.operating.pages` says from which place a page of operators goes on (`edge_of`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, select, union_all

from libs.contracts.operating.pages import Order


def beyond(key: ColumnElement[Any], edge: ColumnElement[Any], order: Order) -> ColumnElement[bool]:
    """The condition of the rows that come after the edge."""
    return key < edge if order is Order.NEWEST else key > edge


def in_order(order: Order, *columns: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    """The columns of the key, for ORDER BY."""
    return [column.desc() if order is Order.NEWEST else column.asc() for column in columns]


def merged(parts: Iterable[Select[Any]], order: Order) -> Select[Any]:
    """A page put together from pages that have the columns of the key alone. An index has each of them in order, so the
    page costs as much as its rows.
    """
    found = union_all(*parts).subquery("found")
    return select(*found.c).order_by(*in_order(order, *found.c)).limit(bindparam("limit"))
