"""The health of subscriptions, as their subscribers and operators see it (interface §8)."""

from __future__ import annotations

from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.webhook_views import HealthState, LastError, SubscriptionHealth
from libs.contracts.webhooks import GetHealth
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.webhook_dispatcher.handlers.subscriptions import owned
from services.webhook_dispatcher.repository import deliveries, health
from services.webhook_dispatcher.repository.health import SubscribedEndpoint

MOST_COUNTED = 10_000


class HealthQueries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, principal: Principal, command: GetHealth, _: float) -> Result:
        async with self._database.snapshot() as connection:
            record = await owned(connection, principal, command.subscription_id)
            [endpoint] = await health.read(connection, [record.id])
            return Result(data=await health_view(connection, endpoint))


async def health_view(
    connection: AsyncConnection, endpoint: SubscribedEndpoint
) -> SubscriptionHealth:
    pending, failing = await deliveries.count_waiting(
        connection, endpoint.subscription.id, MOST_COUNTED
    )
    known, state = endpoint.health, endpoint.state
    is_unavailable = state is HealthState.UNAVAILABLE
    last_error = None
    if known.last_failure_at is not None:
        last_error = LastError(
            at=known.last_failure_at,
            response_status=known.last_failure_status,
            error=known.last_failure_error,
        )
    return SubscriptionHealth(
        state=state,
        since=endpoint.unavailable_at if is_unavailable else known.state_since,
        last_success_at=known.last_success_at,
        last_error=last_error,
        next_probe_at=None if is_unavailable else known.open_until,
        pending=pending,
        failing=failing,
    )
