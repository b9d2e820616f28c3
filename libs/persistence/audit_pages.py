"""Pages of a service's audit, for operators: by the order of the chain, with filters over what entries say.

The chain is indexed by day and number alone, so a filter looks at `LOOKED_AT` rows for one page, and the next page goes
on after them. Entries are compared as texts: a row that was changed by other means need not be JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    Date,
    Select,
    Text,
    bindparam,
    func,
    or_,
    select,
    tuple_,
)

from libs.contracts.exact_json import encode
from libs.contracts.operating.audit_chain import Row
from libs.contracts.operating.pages import Order
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order
from libs.persistence.tables import audit as table

LOOKED_AT = 20_000
"""Rows that one page looks at, at most: some 50 ms."""

_FIRST, _LAST = bindparam("first_day", type_=Date), bindparam("last_day", type_=Date)
_AFTER_DAY = bindparam("after_day", type_=Date)
_AFTER_NUMBER = bindparam("after_number", type_=BigInteger)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows; None: any.

    Args:
        since, until: days, both included.
        text: stands in the entry or in one of its values, in upper or lower case.
    """

    since: date | None = None
    until: date | None = None
    actor: str | None = None
    action: str | None = None
    text: str | None = None

    @property
    def filters(self) -> bool:
        return not (self.actor is self.action is self.text is None)


def _rows(order: Order) -> Select[Any]:
    place = tuple_(table.c.day, table.c.number)
    after = tuple_(_AFTER_DAY, _AFTER_NUMBER)
    return (
        select(table)
        .where(table.c.day.between(_FIRST, _LAST), beyond(place, after, order))
        .order_by(*in_order(order, table.c.day, table.c.number))
    )


def _says(name: str, text: Any) -> Any:
    found = bindparam(name, type_=Text)
    return or_(found.is_(None), func.strpos(text, found) > 0)


def _says_as_value(text: Any) -> Any:
    """Within a value quotation marks and backslashes are escaped."""
    escaped = func.strpos(text, bindparam("text_as_value", type_=Text)) > 0
    return or_(_says("text", text), escaped)


def _filtered(order: Order) -> Select[Any]:
    looked_at = _rows(order).limit(bindparam("window")).subquery()
    return (
        select(looked_at)
        .where(
            _says("actor", looked_at.c.entry),
            _says("action", looked_at.c.entry),
            _says_as_value(func.lower(looked_at.c.entry)),
        )
        .order_by(*in_order(order, looked_at.c.day, looked_at.c.number))
        .limit(bindparam("limit"))
    )


_PAGES = {order: _rows(order).limit(bindparam("limit")) for order in Order}
_FILTERED = {order: _filtered(order) for order in Order}
_END_OF_LOOK = {
    order: _rows(order)
    .with_only_columns(table.c.day, table.c.number)
    .offset(bindparam("all_but_one"))
    .limit(1)
    for order in Order
}


async def page(
    connection: AsyncConnection,
    wanted: Wanted,
    *,
    after: tuple[date, int] | None,
    order: Order,
    limit: int,
) -> tuple[Sequence[Row], tuple[date, int] | None]:
    """At most `limit` rows after a place, and the place after which the next page begins, None at the end.

    With a filter a page may have fewer rows, or none, although others follow.
    """
    beginning = (date.max, 0) if order is Order.NEWEST else (date.min, 0)
    after_day, after_number = after if after is not None else beginning
    place = {
        "first_day": wanted.since or date.min,
        "last_day": wanted.until or date.max,
        "after_day": after_day,
        "after_number": after_number,
    }
    if wanted.filters:
        values = place | {
            "actor": _member("actor", wanted.actor),
            "action": _member("action", wanted.action),
            "text": wanted.text.lower() if wanted.text is not None else None,
            "text_as_value": _as_value(wanted.text),
            "window": LOOKED_AT,
            "limit": limit + 1,
        }
        found = (await connection.execute(_FILTERED[order], values)).all()
    else:
        found = (await connection.execute(_PAGES[order], place | {"limit": limit + 1})).all()
    rows = [Row(r.day, r.number, r.entry, bytes(r.previous), bytes(r.hash)) for r in found[:limit]]
    if len(found) > limit:
        return rows, (rows[-1].day, rows[-1].number)
    if not wanted.filters:
        return rows, None
    end = (
        await connection.execute(_END_OF_LOOK[order], place | {"all_but_one": LOOKED_AT - 1})
    ).first()
    return rows, (end.day, end.number) if end is not None else None


def _as_value(text: str | None) -> str | None:
    """As it stands within a value of an entry in lower case; None where that is the text itself."""
    if text is None:
        return None
    escaped = encode(text.lower()).decode()[1:-1].lower()
    return escaped if escaped != text.lower() else None


def _member(name: str, value: str | None) -> str | None:
    """As `audit.Entry.text` writes it; within the text of another member its quotes would be escaped."""
    return None if value is None else f'"{name}":{encode(value).decode()}'
