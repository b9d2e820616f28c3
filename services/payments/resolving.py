"""An operator's decision on a wire whose outcome is not known."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from libs.contracts.wires import WireState
from libs.persistence import audit, parking
from libs.persistence.engine import Database
from services.payments import states
from services.payments.models import WireRecord
from services.payments.repository import sends, wires


class CannotResolve(Exception):
    """The wire is in no state for this; the message says why."""


async def resolve_wire(
    database: Database, transaction_id: UUID, decision: WireState | None, reason: str, *, by: str
) -> WireRecord:
    """Record the decision, if any, and have the wire's send driven now. Returns the wire as it then is.

    Args:
        decision: submitted or rejected; None has the provider asked again.
        reason: stands in the wire's history beside the decision.
        by: the operator, for the audit.

    Raises:
        CannotResolve: there is no such wire, its outcome is known, or its send is under way.
    """
    async with database.transaction() as connection:
        send = await parking.lock(connection, transaction_id)
        wire = (await wires.lock(connection, [transaction_id])).get(transaction_id)
        if wire is None:
            raise CannotResolve(f"There is no wire {transaction_id}.")
        if send is None:
            raise CannotResolve(f"The wire is {wire.state}: its sender has its answer.")
        if decision is not None:
            if not wire.is_unknown:
                raise CannotResolve("Only a wire whose outcome is unknown can be decided on.")
            if send.is_driven:
                raise CannotResolve("The provider is being asked right now. Try again shortly.")
            wire = states.advance(wire, decision, at=datetime.now(UTC), reason=reason)
            saved = await wires.save(connection, wire)
            assert saved, "its row is locked"
        await sends.make_due(connection, transaction_id)
        await audit.append(
            connection,
            [
                audit.by_operator(
                    by,
                    "wires.resolve",
                    transaction_id=str(transaction_id),
                    decision=decision.value if decision else None,
                    reason=reason or None,
                )
            ],
        )
    return wire
