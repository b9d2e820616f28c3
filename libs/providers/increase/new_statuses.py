"""Statuses that Increase has added since this release: it adds them without notice. An object in one is read all the
same, is never told to have ended, and is noted here for the operator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, get_args

import structlog
from prometheus_client import Counter

from libs.providers.feed_entries import shown_type

Kind = Literal["account", "ach_transfer", "wire_transfer"]

MOST_LOGGED = 100

NEW_STATUSES = Counter(
    "bankside_increase_new_statuses",
    "Objects of Increase that were read in a status which this release does not know",
    ["kind"],
)
for _kind in get_args(Kind):
    NEW_STATUSES.labels(_kind)

_log = structlog.get_logger("providers")


def note_new_status(kind: Kind, status: str) -> None:
    """Count the object, and log its status once in a process."""
    NEW_STATUSES.labels(kind).inc()
    _log_once(kind, shown_type(status))


@lru_cache(MOST_LOGGED)
def _log_once(kind: str, status: str | None) -> None:
    _log.warning("increase_has_a_new_status", kind=kind, status=status)
