"""Changing rows that a statement of its own chooses: a batch, or those that no other transaction has locked."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, any_, func


def is_chosen(key: ColumnElement[Any], chosen: Select[Any]) -> ColumnElement[bool]:
    """Whether the key is among those that `chosen` selects, which is carried out once, before anything is changed.

    With `IN`, PostgreSQL may carry it out anew for each row of the table, when its statistics say that there are few:
    then each time for other rows, since those that were chosen before are locked or changed.

    For a key of several columns, select the rows in a CTE with FOR UPDATE: PostgreSQL does not inline that, so it is
    carried out once, too.
    """
    return key == any_(func.array(chosen.scalar_subquery()))
