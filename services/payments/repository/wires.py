"""Wires and their history. What a caller asks for is scoped by tenant and customer; what the provider reports is not,
since it knows our ids only.

A wire's version is saved only on top of the one before, with its step of history and its event, in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from libs.contracts.wires import WireState
from libs.persistence import outbox
from libs.persistence.continuity import Compared
from libs.providers.writing import Earlier
from services.payments.models import Step, WireRecord
from services.payments.views import wire_event

COLUMNS = """
    w.transaction_id, w.tenant, w.customer_id, w.sending_account_id, w.external_account_id, w.amount, w.purpose,
    CAST(extract(epoch FROM clock_timestamp() - w.send_begun_at) AS double precision) AS send_age_seconds,
    w.last_sent_at, CAST(extract(epoch FROM clock_timestamp() - w.last_sent_at) AS double precision)
        AS last_send_age_seconds,
    w.canceled_by, w.created_at,
    (SELECT array_agg(h.state ORDER BY h.sequence) FROM wire_history h WHERE h.transaction_id = w.transaction_id)
        AS states,
    (SELECT array_agg(h.at ORDER BY h.sequence) FROM wire_history h WHERE h.transaction_id = w.transaction_id)
        AS moments,
    (SELECT array_agg(h.reason ORDER BY h.sequence) FROM wire_history h WHERE h.transaction_id = w.transaction_id)
        AS reasons
"""

_ADD = text(
    """
    WITH wire AS (
        INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, sequence, send_begun_at, last_sent_at, created_at)
        VALUES (:transaction_id, :tenant, :customer_id, :sending_account_id, :external_account_id, :amount,
            :purpose, :state, 1, clock_timestamp(), clock_timestamp(), CAST(:at AS timestamptz))
    )
    INSERT INTO wire_history (transaction_id, sequence, state, at)
    VALUES (:transaction_id, 1, :state, CAST(:at AS timestamptz))
    """
)

# One row per wire on top of its last version, and one per step. A wire that has moved on meanwhile gets neither. The
# limit leaves all, and has each found by its key; see `inbox_groups.EACH_BY_ITS_KEY`.
_SAVE = text(
    """
    WITH saved AS (
        UPDATE wires w SET state = v.state, sequence = v.sequence, canceled_by = v.canceled_by
        FROM (SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:before AS integer[]), CAST(:states AS text[]),
            CAST(:sequences AS integer[]), CAST(:cancelers AS uuid[])) AS v (id, before, state, sequence, canceled_by)
            LIMIT cardinality(CAST(:ids AS uuid[]))) AS v
        WHERE w.transaction_id = v.id AND w.sequence = v.before
        RETURNING w.transaction_id
    ), steps AS (
        INSERT INTO wire_history (transaction_id, sequence, state, reason, at)
        SELECT s.* FROM unnest(CAST(:step_ids AS uuid[]), CAST(:step_sequences AS integer[]),
            CAST(:step_states AS text[]), CAST(:step_reasons AS text[]), CAST(:step_moments AS timestamptz[]))
            AS s (transaction_id, sequence, state, reason, at)
        JOIN saved ON saved.transaction_id = s.transaction_id
    )
    SELECT count(*) FROM saved
    """
)

LOST_HISTORY = """
    (SELECT lost_history_seconds()) AS lost_seconds,
    CASE WHEN (SELECT lost_history_seconds()) IS NULL THEN NULL ELSE (
        SELECT extract(epoch FROM clock_timestamp() - i.accepted_at)::double precision
        FROM inbox i WHERE i.command_id = held.command_id) END AS accepted_seconds
"""
"""Columns of a statement that begins sends, of each `held.command_id`: see `sends_in_lost_history`."""

_LOST_HISTORY = text(
    "SELECT lost_history_seconds() AS lost_seconds,"
    " CAST(extract(epoch FROM clock_timestamp() - accepted_at) AS double precision) AS accepted_seconds"
    " FROM inbox WHERE command_id = :id"
)
_HAS_LOST_HISTORY = text("SELECT lost_history_seconds() IS NOT NULL")
_BEGIN_SEND = text(
    "UPDATE wires SET send_begun_at = coalesce(send_begun_at, clock_timestamp()),"
    " last_sent_at = clock_timestamp() WHERE transaction_id = :id AND state = 'pending_submission'"
)
_NOT_SENT_ANEW = text(
    "UPDATE wires SET last_sent_at = :last_sent_at"
    " WHERE transaction_id = :id AND state = 'pending_submission'"
)
_WITHDRAW_SEND = text(
    "UPDATE wires SET send_begun_at = NULL, last_sent_at = NULL"
    " WHERE transaction_id = :id AND state = 'pending_submission'"
)
# Settled: its command was final, so that the bank had accepted it by then.
_KNOWN = text(
    "SELECT w.transaction_id, i.finished_at AS settled_at"
    " FROM wires w LEFT JOIN inbox i ON i.command_id = w.transaction_id"
    " WHERE w.transaction_id = ANY(CAST(:ids AS uuid[]))"
)
_LOCK = text(
    "SELECT 1 FROM wires WHERE transaction_id = ANY(:ids) ORDER BY transaction_id FOR NO KEY UPDATE"
)
_BY_IDS = text(f"SELECT {COLUMNS} FROM wires w WHERE w.transaction_id = ANY(:ids)")  # noqa: S608 - constants
_OWN = "w.transaction_id = :id AND w.tenant = :tenant AND w.customer_id = :customer_id"
_LOCK_OWN = text(f"SELECT 1 FROM wires w WHERE {_OWN} FOR NO KEY UPDATE")  # noqa: S608 - constants
_FIND_OWN = text(f"SELECT {COLUMNS} FROM wires w WHERE {_OWN}")  # noqa: S608 - constants


async def add(connection: AsyncConnection, wire: WireRecord) -> None:
    """A new wire whose first send begins, with its event."""
    await connection.execute(
        _ADD,
        {
            "transaction_id": wire.transaction_id,
            "tenant": wire.tenant,
            "customer_id": wire.customer_id,
            "sending_account_id": wire.sending_account_id,
            "external_account_id": wire.external_account_id,
            "amount": wire.amount,
            "purpose": wire.purpose,
            "state": wire.state.value,
            "at": wire.created_at,
        },
    )
    await outbox.record(connection, wire_event(wire))


async def save(connection: AsyncConnection, *versions: WireRecord) -> bool:
    """Versions of wires, of one wire in their order, with their events; false when one has moved on meanwhile.

    Then the transaction must not be committed, unless it was about a single wire.
    """
    if not versions:
        return True
    latest = {wire.transaction_id: wire for wire in versions}
    first: dict[UUID, WireRecord] = {}
    for wire in versions:
        first.setdefault(wire.transaction_id, wire)
    saved = await connection.execute(
        _SAVE,
        {
            "ids": list(latest),
            "before": [first[transaction_id].sequence - 1 for transaction_id in latest],
            "states": [wire.state.value for wire in latest.values()],
            "sequences": [wire.sequence for wire in latest.values()],
            "cancelers": [wire.canceled_by for wire in latest.values()],
            "step_ids": [wire.transaction_id for wire in versions],
            "step_sequences": [wire.sequence for wire in versions],
            "step_states": [wire.state.value for wire in versions],
            "step_reasons": [wire.reason for wire in versions],
            "step_moments": [wire.updated_at for wire in versions],
        },
    )
    if saved.scalar_one() != len(latest):
        return False
    await outbox.record(connection, *(wire_event(wire) for wire in versions))
    return True


async def lock(
    connection: AsyncConnection, transaction_ids: Collection[UUID]
) -> dict[UUID, WireRecord]:
    """Those of these wires that there are, of any tenant, their rows locked until the transaction ends."""
    values = {"ids": list(transaction_ids)}
    await connection.execute(_LOCK, values)
    rows = await connection.execute(_BY_IDS, values)  # anew: history as of when the lock was got
    return {row.transaction_id: wire_of(row) for row in rows}


async def find(
    connection: AsyncConnection,
    principal: Principal,
    transaction_id: UUID,
    *,
    for_change: bool = False,
) -> WireRecord | None:
    """The wire, when it is the principal's.

    Args:
        for_change: lock its row until the transaction ends.
    """
    values = {
        "id": transaction_id,
        "tenant": principal.tenant,
        "customer_id": principal.customer_id,
    }
    if for_change:
        await connection.execute(_LOCK_OWN, values)
    row = (await connection.execute(_FIND_OWN, values)).first()
    return None if row is None else wire_of(row)


async def find_any(connection: AsyncConnection, transaction_id: UUID) -> WireRecord | None:
    """A wire of any tenant: for the operator."""
    row = (await connection.execute(_BY_IDS, {"ids": [transaction_id]})).first()
    return None if row is None else wire_of(row)


async def compare(
    connection: AsyncConnection, transaction_ids: Sequence[str], life_began: datetime
) -> Compared:
    """Wires that the bank holds, with those of any tenant here: the bank knows no tenants. See `continuity`.

    An id that none of ours can look like names a wire that was not sent by this system.
    """
    asked = [known for known in map(parse_id, transaction_ids) if known is not None]
    rows = await connection.execute(_KNOWN, {"ids": asked})
    settled_at: dict[UUID, datetime | None] = {row.transaction_id: row.settled_at for row in rows}
    return Compared(
        missing=[str(each) for each in asked if each not in settled_at],
        reaches_back=any(at is not None and at < life_began for at in settled_at.values()),
    )


async def begin_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """From the commit on the wire may have been sent, the first time or again. Its row is locked, and it is pending."""
    begun = await connection.execute(_BEGIN_SEND, {"id": transaction_id})
    if begun.rowcount != 1:
        raise RuntimeError(f"wire {transaction_id} is not pending: it must not be sent")


async def not_sent_anew(
    connection: AsyncConnection, transaction_id: UUID, last_sent_at: datetime | None
) -> None:
    """The send that began last did certainly not happen; the one before it stays the last."""
    await connection.execute(_NOT_SENT_ANEW, {"id": transaction_id, "last_sent_at": last_sent_at})


async def withdraw_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """The send that began did certainly not happen, and no other has."""
    await connection.execute(_WITHDRAW_SEND, {"id": transaction_id})


async def has_lost_history(connection: AsyncConnection) -> bool:
    """Whether sends may have been made of which this database knows nothing: see `continuity`."""
    return bool((await connection.execute(_HAS_LOST_HISTORY)).scalar_one())


async def lost_history(connection: AsyncConnection, transaction_id: UUID) -> Earlier | None:
    """As `sends_in_lost_history`, of the wire of one command."""
    row = (await connection.execute(_LOST_HISTORY, {"id": transaction_id})).one()
    return sends_in_lost_history(row.lost_seconds, row.accepted_seconds)


def sends_in_lost_history(
    lost_seconds: float | None, accepted_seconds: float | None
) -> Earlier | None:
    """What may have been sent of a wire in a history that this database lost, from LOST_HISTORY; None: it lost none.

    The last such send was not after this life of the database began. The first one is bounded by when the command was
    accepted here; one that was accepted before, and lost, is still found by its id, which the bank does not forget.
    """
    if lost_seconds is None:
        return None
    return Earlier(accepted_seconds or 0.0, lost_seconds)


def wire_of(row: Row[Any]) -> WireRecord:
    """The record of a row of COLUMNS."""
    steps = zip(row.states, row.moments, row.reasons, strict=True)
    return WireRecord(
        transaction_id=row.transaction_id,
        tenant=row.tenant,
        customer_id=row.customer_id,
        sending_account_id=row.sending_account_id,
        external_account_id=row.external_account_id,
        amount=row.amount,
        purpose=row.purpose,
        send_age_seconds=row.send_age_seconds,
        last_sent_at=row.last_sent_at,
        last_send_age_seconds=row.last_send_age_seconds,
        canceled_by=row.canceled_by,
        created_at=row.created_at,
        history=tuple(Step(WireState(state), at, reason) for state, at, reason in steps),
    )
