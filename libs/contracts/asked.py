"""What a task works for: the request that a caller made, and the key by which it was signed."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Asked(NamedTuple):
    """Under which request id, and by whom: the key or operator, None while that is not verified."""

    request_id: str
    key: str | None


asked: ContextVar[Asked | None] = ContextVar("asked", default=None)
"""What this task works for. Every line that it logs has both, and so has every query that it asks other services."""
