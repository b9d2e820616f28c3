"""The secret of a subscription: shown to principals that may write webhooks, and rotated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.contracts.webhook_views import SubscriptionSecret
from libs.contracts.webhooks import GetSecret, RotateSecret
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.handlers.subscriptions import owned
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.repository import subscriptions
from services.webhook_dispatcher.signing_secrets import new_secret, open_secret, seal_secret


class Secrets:
    """Secrets leave this service only sealed.

    Args:
        overlap: how long the previous secret signs beside the new one.
    """

    def __init__(
        self, outcomes: Outcomes, sealer: Sealer, database: Database, overlap: timedelta
    ) -> None:
        self._outcomes = outcomes
        self._sealer = sealer
        self._database = database
        self._overlap = overlap

    async def get(self, principal: Principal, command: GetSecret, _: float) -> Result:
        async with self._database.transaction() as connection:
            record = await owned(connection, principal, command.subscription_id)
        return Result(data=self._view(record))

    async def rotate(self, drive: Drive, command: RotateSecret) -> Result:
        async def rotate(connection: AsyncConnection) -> SubscriptionSecret:
            record = await owned(
                connection, drive.principal, command.subscription_id, for_change=True
            )
            sealed = seal_secret(self._sealer, record.id, new_secret())
            return self._view(
                await subscriptions.rotate_secret(connection, record.id, sealed, self._overlap)
            )

        return Result(data=await self._outcomes.change(drive, SubscriptionSecret, rotate))

    def _view(self, record: SubscriptionRecord) -> SubscriptionSecret:
        expires_at = record.previous_secret_expires_at
        signs = expires_at is not None and expires_at > datetime.now(UTC)
        return SubscriptionSecret(
            secret=open_secret(self._sealer, record.id, record.secret),
            previous_secret_expires_at=expires_at if signs else None,
        )
