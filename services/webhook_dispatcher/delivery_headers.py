"""The headers of a delivery (Standard Webhooks)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID


def message_id_of(event_id: UUID) -> str:
    return f"evt_{event_id}"


def timestamp_of(at: datetime) -> str:
    return str(int(at.timestamp()))


def headers_of(event_id: UUID, at: datetime, signature: str) -> dict[str, str]:
    """What is sent with a delivery that was signed at that moment."""
    return {
        "content-type": "application/json",
        "webhook-id": message_id_of(event_id),
        "webhook-timestamp": timestamp_of(at),
        "webhook-signature": signature,
    }
