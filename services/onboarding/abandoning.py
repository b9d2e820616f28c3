"""When a parked command of onboarding must not be abandoned."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.handlers import apply_decision
from services.onboarding.repository import open_commands


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.handling.operating.open_commands`: a customer that is pending would stay so and keep its EIN; one whose
    opening was begun would have at the bank what it does not have here.
    """
    if operation == ONBOARD_CUSTOMER.name:
        if not await open_commands.has_pending_customer(connection, command_id):
            return None
        why = "Its customer is pending, and would stay so"
    elif operation == apply_decision.OPERATION:
        if not await open_commands.has_begun_opening(connection, command_id):
            return None
        why = "It has begun to open its customer at the bank, which would stay half-way"
    else:
        return None
    return (
        f"{why}: resolve its steps (`bankside sagas list --unknown`), one that was resolved wrongly once more, then"
        f" `bankside commands retry {command_id} --reason TEXT`."
    )
