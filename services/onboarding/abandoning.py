"""When a parked command of onboarding must not be abandoned."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.repository import open_commands


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.handling.operating.open_commands`: a customer that is pending would stay so, and keep its EIN."""
    if operation != ONBOARD_CUSTOMER.name:
        return None
    if not await open_commands.has_pending_customer(connection, command_id):
        return None
    return (
        "Its customer is pending, and would stay so: resolve its steps (`bankside sagas list --unknown`),"
        f" then `bankside commands retry {command_id}`."
    )
