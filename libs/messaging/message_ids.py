"""When a message was made, as its id says: ids of messages are UUIDs of version 7, of events after `evt_`."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID


def time_within(message_id: str | None) -> datetime | None:
    """The millisecond in which the id was made; None of another kind of id."""
    try:
        made = UUID((message_id or "").removeprefix("evt_"))
        return datetime.fromtimestamp((made.int >> 80) / 1000, UTC) if made.version == 7 else None
    except ValueError:  # another kind of id, or a year after 9999
        return None
