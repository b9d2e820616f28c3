"""Changing rows that a statement of its own chooses: a batch, or those that no other transaction has locked."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, any_, func


def is_chosen(key: ColumnElement[Any], chosen: Select[Any]) -> ColumnElement[bool]:
    """Whether the key is among those that `chosen` selects. PostgreSQL executes `chosen` once, before it changes a row.

    With `IN` it may execute `chosen` anew for each row of the table, when its statistics say that there are few rows:
    each time it then gets other rows, since those that it chose before are locked or changed.

    For a key of several columns, select the rows in a CTE with FOR UPDATE, which PostgreSQL does not inline and so
    executes once, too.
    """
    return key == any_(func.array(chosen.scalar_subquery()))
