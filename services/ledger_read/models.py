"""Pages of lists, and entries of the provider's feed in the terms of the event table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Generic, TypeVar

from libs.contracts.events import EventType
from libs.contracts.model import Model

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """One page of a list of `total` rows. `as_of_date`: the day of the load that they are of, where there are loads."""

    rows: list[RowT]
    total: int
    as_of_date: date | None = None


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """An event of a resource of one of the bank's customers. `data` is what subscribers may read."""

    event_type: EventType
    customer_id: str
    resource_id: str
    occurred_at: datetime
    data: Model


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of the feed. `event` is None when the entry's type is not one that this service reports."""

    position: int
    type: str
    event: ReportedEvent | None
