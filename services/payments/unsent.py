"""Whether nothing was sent of a wire: asked before it is canceled or declined."""

from __future__ import annotations

from libs.contracts.errors import InvalidState, Unavailable
from libs.persistence.async_engine import AsyncConnection
from services.payments.models import AbsentAtBank, WireRecord
from services.payments.repository import send_marks

SEND_WAS_LOST = "The bank has the wire: that it was sent is what this database lost."


async def require_unsent(
    connection: AsyncConnection, wire: WireRecord, *, absent: AbsentAtBank | None = None
) -> None:
    """Raises InvalidState: a send of the wire, whose row is locked, may have begun; Unavailable: it is not known."""
    if not (wire.is_pending or wire.waits_for_approval):
        raise InvalidState(f"The wire is {wire.state}.")
    if wire.is_unknown:
        raise InvalidState("The wire is being sent.")
    await require_no_lost_send(connection, wire, absent=absent)


async def require_no_lost_send(
    connection: AsyncConnection, wire: WireRecord, *, absent: AbsentAtBank | None
) -> None:
    """Of a wire whose row is locked, and of which this database knows no send.

    Args:
        absent: None: core banking was not asked.

    Raises:
        InvalidState: the bank had it when its send was found missing, also once the case is closed.
        Unavailable: no key keeps it. This database may have gone back, as after each start of its server until it is
            checked, and the bank may have had a send that it does not know of.
    """
    lost = await send_marks.lost_sends(connection, wire.transaction_id)
    if lost.was_found_missing:
        raise InvalidState(SEND_WAS_LOST)
    if lost.lost_seconds is None:
        return
    if absent is None or lost.lost_seconds < absent.transit_seconds:
        raise Unavailable("It is being found out whether the wire was sent. Try again later.")
