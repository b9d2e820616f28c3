"""The audit of what operators do."""

from __future__ import annotations

from libs.contracts.principal import Principal
from libs.persistence import audit
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit import Entry


async def record(
    connection: AsyncConnection,
    principal: Principal,
    action: str,
    *,
    reason: str,
    **subject: str | float | None,
) -> None:
    """Append what an operator does, in the transaction that does it, as the last of it.

    Args:
        action: as the command line names it, such as `wires.resolve`.
        subject: to what, without anything sensitive.
    """
    entry = Entry(
        actor=principal.actor,
        action=action,
        outcome="ok",
        subject={**subject, "reason": reason},
        address=principal.address,
        request_id=principal.request_id,
        key=principal.subscription_key,
        browser=principal.browser,
    )
    await audit.append(connection, [entry])
