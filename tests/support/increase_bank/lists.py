"""Lists: filters as documented, newest first, one page after another by an opaque cursor."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from increase.types.event import Event

from tests.support.increase_bank.errors import InvalidParameters
from tests.support.increase_bank.postings import SELECT, transaction
from tests.support.increase_bank.shapes import Json, microseconds, rendered, timestamp
from tests.support.increase_bank.store import COLUMNS, Store

MOST = 100
COMPARISONS = {"after": ">", "before": "<", "on_or_after": ">=", "on_or_before": "<="}


@dataclass(frozen=True)
class Source:
    """Where a list's rows are. A row is what is rendered, followed by its time and number."""

    select: str
    columns: Mapping[str, str]
    """The expression of each filter."""
    render: Callable[[Store, tuple[Any, ...]], str]
    fixed: tuple[str, ...] = ()
    """Conditions of every query."""
    values: tuple[Any, ...] = ()


def objects(kind: str, *, hide_archived: bool = False) -> Source:
    """The bank's objects of a kind. Filters without a column of their own are fields of the object."""
    conditions: tuple[str, ...] = ("kind = ?",)
    if hide_archived:
        conditions += ("coalesce(private ->> 'archived', 0) = 0",)
    return Source(
        "SELECT body, created, seq FROM object",
        {name: name for name in COLUMNS},
        lambda _, row: str(row[0]),
        conditions,
        (kind,),
    )


POSTINGS = Source(
    SELECT.replace(" FROM", ", created, seq FROM"),
    {"account_id": "account_id", "category": "category", "route_id": "route_id"},
    lambda _, row: transaction(row[:-2]),
)


def _event(_: Store, row: tuple[Any, ...]) -> str:
    event_id, category, object_id, object_type, created = row[:5]
    body: Json = {
        "id": event_id,
        "type": "event",
        "category": category,
        "associated_object_id": object_id,
        "associated_object_type": object_type,
        "created_at": timestamp(created),
    }
    return rendered(Event, body)


EVENTS = Source(
    "SELECT id, category, object_id, object_type, created, created, seq FROM event",
    {"associated_object_id": "object_id", "category": "category"},
    _event,
)


def page(store: Store, source: Source, query: Json, limit_of_bank: int = MOST) -> str:
    """One page as it is answered. `query` is validated already. Raises InvalidParameters."""
    filters = dict(query)
    limit = filters.pop("limit", MOST)
    if not 1 <= limit <= MOST:
        raise InvalidParameters.of("limit", f"must be between 1 and {MOST}")
    limit = min(limit, limit_of_bank)
    cursor = filters.pop("cursor", None)
    order = filters.pop("order_by", {}).get("direction", "descending")
    ascending = order == "ascending"
    conditions, values = list(source.fixed), list(source.values)
    for name, wanted in filters.items():
        _filter(source, name, wanted, conditions, values)
    if cursor is not None:
        conditions.append("(created, seq) > (?, ?)" if ascending else "(created, seq) < (?, ?)")
        values.extend(_position(cursor, order))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    direction = "ASC" if ascending else "DESC"
    statement = (
        f"{source.select}{where} ORDER BY created {direction}, seq {direction} LIMIT {limit + 1}"
    )
    rows = store.rows(statement, values)
    more, rows = len(rows) > limit, rows[:limit]
    following = json.dumps(_cursor(order, *rows[-1][-2:]) if more else None)
    data = ",".join(source.render(store, row) for row in rows)
    return f'{{"data":[{data}],"next_cursor":{following}}}'


def _filter(
    source: Source, name: str, wanted: Any, conditions: list[str], values: list[Any]
) -> None:
    if name == "created_at":
        for comparison, moment in wanted.items():
            conditions.append(f"created {COMPARISONS[comparison]} ?")
            values.append(microseconds(moment))
        return
    column = source.columns.get(name)
    if column is None:
        column = "json_extract(body, ?)"
        values.append(f"$.{_path(name)}")
    if not isinstance(wanted, dict):
        conditions.append(f"{column} = ?")
        values.append(wanted)
    elif "in" in wanted:
        conditions.append(f"{column} IN ({', '.join('?' for _ in wanted['in'])})")
        values.extend(wanted["in"])
    else:
        for number, (comparison, moment) in enumerate(wanted.items()):
            if number:
                values.append(f"$.{_path(name)}")
            conditions.append(f"{column} {COMPARISONS[comparison]} ?")
            values.append(timestamp(microseconds(moment)))


def _path(name: str) -> str:
    """Of the field that a filter names: lists of entities filter by `validation.status` as `validation_status`."""
    return "validation.status" if name == "validation_status" else name


def _cursor(order: str, created: int, seq: int) -> str:
    return base64.urlsafe_b64encode(f"{order[:4]}:{created}:{seq}".encode()).decode().rstrip("=")


def _position(cursor: str, order: str) -> tuple[int, int]:
    """Raises InvalidParameters: not a cursor of a list in this order."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        made_for, created, seq = base64.urlsafe_b64decode(padded).decode().split(":")
        if made_for == order[:4]:
            return int(created), int(seq)
    except (ValueError, binascii.Error):
        pass
    raise InvalidParameters.of("cursor", "is not a cursor of this list")
