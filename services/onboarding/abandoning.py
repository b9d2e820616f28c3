"""When a parked command of onboarding must not be abandoned."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.ids import DECISION
from services.onboarding.repository import opening_commands, step_cases


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.handling.operating.open_commands`: a customer that is pending would stay so and keep its EIN; one whose
    opening was begun would have at the bank what it does not have here. Of other commands a step of
    unknown outcome is resolved first, which an operator can always do: a parked command sends nothing.
    """
    is_onboarding = operation == ONBOARD_CUSTOMER.name
    is_decision = operation == DECISION
    if is_onboarding and await opening_commands.has_pending_customer(connection, command_id):
        return _to_be_finished("Its customer is pending, and would stay so", command_id)
    if is_decision and await opening_commands.has_begun_opening(connection, command_id):
        why = "It has begun to open its customer at the bank, which would stay half-way"
        return _to_be_finished(why, command_id)
    unknown = await step_cases.find_unknown_of(connection, command_id)
    if unknown is None:
        return None
    saga_id, step = unknown
    return (
        f"It is not known whether its step {step} happened: find out at the provider, and say so with"
        f" `bankside sagas resolve {saga_id} {step} --as absent|done|refused --reason TEXT`. Then retry it, or abandon"
        " it where no drive will finish it."
    )


def _to_be_finished(why: str, command_id: UUID) -> str:
    return (
        f"{why}: resolve its steps (`bankside sagas list --unknown`), one that was resolved wrongly once more, then"
        f" `bankside commands retry {command_id} --reason TEXT`."
    )
