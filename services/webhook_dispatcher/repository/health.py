"""Subscriptions with the health of their endpoints, whose ever they are. Deleted ones are not found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.webhook_views import HealthState, SubscriptionStatus
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.repository.endpoints import Health
from services.webhook_dispatcher.repository.subscriptions import RECORD, record_of
from services.webhook_dispatcher.tables import DELETED, endpoint, subscription

_HEALTH = (
    endpoint.c.unreachable_in_a_row,
    endpoint.c.open_until,
    endpoint.c.probe_seconds,
    endpoint.c.is_slow,
    endpoint.c.last_success_at,
    endpoint.c.failing_since,
    endpoint.c.failed_events,
    endpoint.c.state_since,
    endpoint.c.last_failure_at,
    endpoint.c.last_failure_status,
    endpoint.c.last_failure_error,
)
_READ = (
    select(*RECORD, subscription.c.generation, subscription.c.unavailable_at, *_HEALTH)
    .join(endpoint, endpoint.c.subscription_id == subscription.c.id)
    .where(
        subscription.c.id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))),
        subscription.c.status != DELETED,
    )
)


@dataclass(frozen=True, slots=True)
class SubscribedEndpoint:
    """A subscription and how its endpoint is doing. `unavailable_at`: when it became unavailable the last time."""

    subscription: SubscriptionRecord
    unavailable_at: datetime | None
    health: Health

    @property
    def state(self) -> HealthState:
        if self.subscription.status is SubscriptionStatus.UNAVAILABLE:
            return HealthState.UNAVAILABLE
        return self.health.state


async def read(connection: AsyncConnection, ids: Sequence[UUID]) -> list[SubscribedEndpoint]:
    """In the order of the ids."""
    rows = await connection.execute(_READ, {"ids": list(ids)})
    found = {row.id: _endpoint(row) for row in rows}
    return [found[each] for each in ids if each in found]


def _endpoint(row: Row[*tuple[Any, ...]]) -> SubscribedEndpoint:
    values = row._mapping
    health = {column.name: values[column.name] for column in (*_HEALTH, subscription.c.generation)}
    return SubscribedEndpoint(
        record_of({column.name: values[column.name] for column in RECORD}),
        row.unavailable_at,
        Health(**health),
    )
