"""The two steps of a send that are committed: its intent, before any call, and what the provider said.

Each is one write under the lease of its driver, made together with those of other sends: the wire, its history and its
event, or nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.handling.group_commit import fenced_write
from libs.persistence import outbox
from libs.persistence.inbox_groups import EACH_BY_ITS_KEY, HELD, Held
from libs.providers.writing import Earlier
from services.payments.models import WireRecord
from services.payments.repository import contradictions, wires
from services.payments.repository.contradictions import Contradiction
from services.payments.views import wire_event

_INTEND = f"""
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::numeric[],
            $8::text[], $9::text[], $10::timestamptz[], $11::text[], $12::text[], $13::bytea[])
            AS a (command_id, lease, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, at, event_id, event_type, event_body) {EACH_BY_ITS_KEY}
    ), {HELD}, wire AS (
        INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, sequence, send_begun_at, last_sent_at, created_at)
        SELECT command_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, 1, clock_timestamp(), clock_timestamp(), at FROM held
    ), step AS (
        INSERT INTO wire_history (transaction_id, sequence, state, at) SELECT command_id, 1, state, at FROM held
    ), event AS (
        {outbox.INSERT} SELECT event_id, event_type, tenant, customer_id, command_id::text, 1, event_body FROM held
    )
    SELECT command_id, {wires.LOST_HISTORY} FROM held
    """  # noqa: S608 - constants

# A wire that has moved on, or that somebody holds, gets nothing.
_RECORD = f"""
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::text[], $6::timestamptz[],
            $7::text[], $8::text[], $9::text[], $10::text[], $11::bytea[])
            AS a (command_id, lease, sequence, state, reason, at, tenant, customer_id, event_id, event_type, event_body)
        {EACH_BY_ITS_KEY}
    ), {HELD}, free AS (
        SELECT held.* FROM wires w JOIN held ON w.transaction_id = held.command_id AND w.sequence = held.sequence - 1
        ORDER BY w.transaction_id FOR NO KEY UPDATE OF w SKIP LOCKED
    ), saved AS (
        UPDATE wires w SET state = free.state, sequence = free.sequence FROM free
        WHERE w.transaction_id = free.command_id AND w.sequence = free.sequence - 1
        RETURNING free.*
    ), step AS (
        INSERT INTO wire_history (transaction_id, sequence, state, reason, at)
        SELECT command_id, sequence, state, reason, at FROM saved
    ), event AS (
        {outbox.INSERT} SELECT event_id, event_type, tenant, customer_id, command_id::text, sequence, event_body
        FROM saved
    )
    SELECT command_id FROM saved
    """  # noqa: S608 - constants


async def _intend_together(
    connection: asyncpg.Connection, intents: Sequence[Held[WireRecord]]
) -> Mapping[UUID, Earlier | None]:
    new = [intent.value for intent in intents]
    events = [wire_event(wire) for wire in new]
    rows = await connection.fetch(
        _INTEND,
        [intent.command_id for intent in intents],
        [intent.command.lease for intent in intents],
        [wire.tenant for wire in new],
        [wire.customer_id for wire in new],
        [wire.sending_account_id for wire in new],
        [wire.external_account_id for wire in new],
        [wire.amount for wire in new],
        [wire.purpose for wire in new],
        [wire.state.value for wire in new],
        [wire.created_at for wire in new],
        [event.event_id for event in events],
        [event.type for event in events],
        [event.body for event in events],
    )
    return {
        row["command_id"]: wires.sends_in_lost_history(row["lost_seconds"], row["accepted_seconds"])
        for row in rows
    }


async def _intend_alone(connection: AsyncConnection, intent: Held[WireRecord]) -> Earlier | None:
    await wires.add(connection, intent.value)
    return await wires.lost_history(connection, intent.command_id)


async def _record_together(
    connection: asyncpg.Connection, records: Sequence[Held[WireRecord]]
) -> Mapping[UUID, WireRecord]:
    versions = {record.command_id: record.value for record in records}
    events = [wire_event(wire) for wire in versions.values()]
    rows = await connection.fetch(
        _RECORD,
        list(versions),
        [record.command.lease for record in records],
        [wire.sequence for wire in versions.values()],
        [wire.state.value for wire in versions.values()],
        [wire.reason for wire in versions.values()],
        [wire.updated_at for wire in versions.values()],
        [wire.tenant for wire in versions.values()],
        [wire.customer_id for wire in versions.values()],
        [event.event_id for event in events],
        [event.type for event in events],
        [event.body for event in events],
    )
    return {row["command_id"]: versions[row["command_id"]] for row in rows}


async def _record_alone(connection: AsyncConnection, record: Held[WireRecord]) -> WireRecord:
    if await wires.save(connection, record.value):
        return record.value
    standing = (await wires.lock(connection, [record.command_id]))[record.command_id]
    if standing.was_accepted != record.value.was_accepted:
        await contradictions.add(
            connection,
            Contradiction(
                "provider_contradicts_record",
                str(record.command_id),
                ours=standing.state.value,
                theirs=record.value.state.value,
            ),
        )
    return standing


INTENDING = fenced_write("intend", _intend_together, _intend_alone, records_events=True)
"""A new wire whose first send begins with the commit. Its id is its command's.

What was perhaps sent of it before: nothing, unless the database may have gone back.
"""

RECORDING = fenced_write("record", _record_together, _record_alone, records_events=True)
"""The next version of the command's wire. The wire as it then is: what was recorded meanwhile stands."""
