"""Times that providers tell."""

from __future__ import annotations

from datetime import UTC, datetime


def aware(moment: datetime) -> datetime:
    """The moment with a time zone: one that a provider told without a zone is UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
