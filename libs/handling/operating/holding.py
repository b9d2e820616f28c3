"""Holding a command, so that an operator can decide on what it sent last.

A decision that a write did not happen is wrong while its last send may still arrive. Waiting alone does not help: a
command whose provider keeps answering nothing sends again meanwhile. So it is held: by itself it is not sent again
until the last send has arrived or never will, and for some minutes more, in which the operator decides. An operator who
has it driven, or a verdict that an onboarding waits for, ends that: then the decision has to wait anew.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from libs.contracts.errors import InvalidState
from libs.contracts.principal import Principal
from libs.handling.operating.auditing import record
from libs.persistence import parking
from libs.persistence.async_engine import AsyncConnection

DECISION_SECONDS = 300.0
"""How much longer a command is held once the operator can decide on it."""


async def hold(
    connection: AsyncConnection,
    principal: Principal,
    action: str,
    command_id: UUID,
    *,
    transit_seconds: float,
    reason: str,
    **subject: str,
) -> InvalidState:
    """Hold a command that no process drives, whose row is locked. Returns what to tell the operator after the commit.

    Args:
        action: such as `wires.hold`, for the audit.
        transit_seconds: how much longer the last send may still arrive.
        reason: the operator's, for the decision.
        subject: of the audit.
    """
    await parking.hold(connection, command_id, seconds=transit_seconds + DECISION_SECONDS)
    await record(connection, principal, action, reason=reason, **subject)
    # Rounded up: a second earlier is too early.
    decidable = datetime.now(UTC) + timedelta(seconds=transit_seconds + 1)
    held = decidable + timedelta(seconds=DECISION_SECONDS - 1)
    return InvalidState(
        "The last send may still arrive at the provider: nothing was decided yet. By itself it is not sent again before"
        f" {held:%H:%M:%S} UTC: look it up there, and decide again from {decidable:%H:%M:%S} UTC on."
    )
