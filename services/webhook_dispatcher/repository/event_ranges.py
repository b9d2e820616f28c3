"""Ranges of events by position, each read in the order of one index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, literal_column, tuple_

from libs.contracts.operating.pages import Order
from libs.persistence.keyset import beyond, in_order
from services.webhook_dispatcher.tables import event

FIRST_POSITION, LAST_POSITION = 0, 2**63 - 1

_BEFORE_ALL = literal_column(str(FIRST_POSITION - 1), BigInteger)
_AFTER_ALL = literal_column(str(LAST_POSITION), BigInteger)


def in_range(
    rows: Select[Any],
    of: Mapping[ColumnElement[Any], ColumnElement[Any]],
    order: Order = Order.OLDEST,
) -> Select[Any]:
    """The first `limit` of the rows beyond the position `edge`, of the events whose columns have these values.

    An index has these columns, in this order, and then the position. The range is one between two of its rows, and not
    an equation: by the latter, PostgreSQL may walk over the positions of all events, in the hope of finding the first
    few soon, and a rare tenant or type costs a walk over everything.
    """
    columns = [*of, event.c.position]
    key = tuple_(*columns)
    edge = tuple_(*of.values(), bindparam("edge", type_=BigInteger))
    end = tuple_(*of.values(), _BEFORE_ALL if order is Order.NEWEST else _AFTER_ALL)
    return (
        rows.where(beyond(key, edge, order), beyond(end, key, order))
        .order_by(*in_order(order, *columns))
        .limit(bindparam("limit"))
    )
