"""The time by which rows are deleted and approvals expire: the earlier of PostgreSQL's clock and this process's.

What is deleted does not come back. By one clock alone, a server that starts with a clock that is ahead, before NTP sets
it, would have what is a moment old deleted. So a row goes when its time is over by both clocks: one that is ahead
deletes nothing too early, and one that is behind has rows kept for longer. When a row was written is PostgreSQL's word
alone.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from sqlalchemy import bindparam, func

from libs.persistence.tables import INSTANT


def process_time() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


# Unlike `clock_timestamp()`, it is stable in a statement, so that an index on the time is used.
EARLIER_NOW = func.least(
    func.statement_timestamp(type_=INSTANT),
    bindparam("process_time", callable_=process_time, type_=INSTANT),
    type_=INSTANT,
)
