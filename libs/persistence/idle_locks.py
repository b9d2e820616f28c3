"""Locks of transactions whose process has stopped.

PostgreSQL ends a transaction whose client sends nothing for `engine.IDLE_IN_TRANSACTION_SECONDS`. That is long for
those that wait for its locks: a statement that takes a lock which others wait for sets a shorter time, until commit.
"""

from __future__ import annotations

from sqlalchemy import Text, func, literal, select, true

LOCKED_IDLE_SECONDS = 3.0

SETTING = "idle_in_transaction_session_timeout"
MILLISECONDS = str(int(LOCKED_IDLE_SECONDS * 1000))

ENDED_WHEN_IDLE = select(
    func.set_config(literal(SETTING, Text), literal(MILLISECONDS, Text), true())
).scalar_subquery()
"""A column of such a statement, without a round trip of its own. It takes effect with the first row that is found."""
