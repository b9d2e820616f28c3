"""The two writes of a send, as plain SQL over arrays, on asyncpg: its intent, before any call, and what the bank said.

Each write is fenced by the lease of its command and made together with those of other sends (`group_commit`): the wire,
its step of the history and its event, or nothing of the three.

In both statements, `LIMIT cardinality($1)` keeps all rows of `asked`. It makes the planner expect few, so that each row
is found by its key even by a plan that was made, and cached, while the tables were empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import msgspec

from libs.handling.group_commit import Write, fenced_write
from libs.persistence import inbox
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from services.payments.models import WireRecord
from services.payments.repository import contradictions, send_marks, wires
from services.payments.repository.contradictions import Contradiction
from services.payments.repository.send_marks import LostHistory
from services.payments.views import wire_event

# While this database may lack sends, the new marks are of a lost send only, as `send_marks.mark_lost_sends` makes them:
# the bank is asked first, and this process may end before it has its answer. A wire that is held back then, since its
# command is of an earlier life (`LostHistory.may_end_it`), has none: nothing is sent of it.
_INTEND = """
    WITH life AS (SELECT lost_history_seconds() AS lost_seconds), asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::numeric[],
            $8::text[], $9::text[], $10::timestamptz[], $11::text[], $12::text[], $13::bytea[], $14::text[],
            $15::text[], $16::text[])
            AS a (command_id, lease, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, at, event_id, event_type, event_body, creditor, actor, trace)
        LIMIT cardinality($1)
    ), leased AS (
        SELECT asked.*, i.accepted_at, i.request_id,
            coalesce(i.life_started_at = pg_postmaster_start_time(), false) AS is_of_this_life, EXISTS (
            SELECT 1 FROM wire_policy p WHERE p.tenant = asked.tenant AND p.customer_id = asked.customer_id
        ) AS has_policy
        FROM asked JOIN inbox i ON i.command_id = asked.command_id AND i.lease = asked.lease
        ORDER BY asked.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    ), wire AS (
        INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, sequence, send_begun_at, last_sent_at, created_at, creditor)
        SELECT command_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, 1, CASE WHEN lost_seconds IS NULL OR is_of_this_life THEN statement_timestamp() END,
            CASE WHEN lost_seconds IS NULL THEN statement_timestamp() WHEN is_of_this_life THEN
                least(clock_timestamp() - make_interval(secs => lost_seconds),
                    statement_timestamp() - interval '1 microsecond') END, at, creditor::jsonb
        FROM leased, life WHERE NOT has_policy
    ), step AS (
        INSERT INTO wire_history (transaction_id, sequence, state, at, by)
        SELECT command_id, 1, state, at, actor FROM leased WHERE NOT has_policy
    ), event AS (
        INSERT INTO outbox (event_id, type, tenant, customer_id, resource_id, sequence, body, request_id, trace_context)
        SELECT event_id, event_type, tenant, customer_id, command_id::text, 1, event_body, request_id, trace
        FROM leased WHERE NOT has_policy
    )
    SELECT command_id, has_policy, lost_seconds,
        extract(epoch FROM clock_timestamp() - accepted_at)::double precision AS accepted_seconds,
        is_of_this_life,
        ('core: ' || command_id::text) IN (SELECT unnest(missing_records) FROM database_life) AS was_found_missing
    FROM leased, life
    """

# A wire that has moved on, or whose row is locked, is left out.
_RECORD = """
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::text[], $6::timestamptz[],
            $7::text[], $8::text[], $9::text[], $10::text[], $11::bytea[], $12::uuid[], $13::text[], $14::text[])
            AS a (command_id, lease, sequence, state, reason, at, tenant, customer_id, event_id, event_type, event_body,
            transaction_id, trace, reason_detail)
        LIMIT cardinality($1)
    ), leased AS (
        SELECT asked.*, i.request_id
        FROM asked JOIN inbox i ON i.command_id = asked.command_id AND i.lease = asked.lease
        ORDER BY asked.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    ), free AS (
        SELECT leased.* FROM wires w JOIN leased
            ON w.transaction_id = leased.transaction_id AND w.sequence = leased.sequence - 1
        ORDER BY w.transaction_id FOR NO KEY UPDATE OF w SKIP LOCKED
    ), saved AS (
        UPDATE wires w SET state = free.state, sequence = free.sequence FROM free
        WHERE w.transaction_id = free.transaction_id AND w.sequence = free.sequence - 1
        RETURNING free.*
    ), step AS (
        INSERT INTO wire_history (transaction_id, sequence, state, reason, at, reason_detail)
        SELECT transaction_id, sequence, state, reason, at, reason_detail FROM saved
    ), event AS (
        INSERT INTO outbox (event_id, type, tenant, customer_id, resource_id, sequence, body, request_id, trace_context)
        SELECT event_id, event_type, tenant, customer_id, transaction_id::text, sequence, event_body, request_id, trace
        FROM saved
    )
    SELECT command_id FROM saved
    """


@dataclass(frozen=True, slots=True)
class Intended:
    """The result of recording the intent to send a wire.

    Args:
        has_policy: the wire was not recorded: limits and approval are to be looked at first.
        lost: what a database that went back may have lost of it; None otherwise.
    """

    has_policy: bool
    lost: LostHistory | None


async def _intend(
    connection: asyncpg.Connection, intents: Sequence[LeasedValue[WireRecord]]
) -> Mapping[UUID, Intended]:
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
        [wire.creditor and msgspec.json.encode(wire.creditor).decode() for wire in new],
        [wire.initiator for wire in new],
        [intent.command.trace for intent in intents],
    )
    return {
        row["command_id"]: Intended(
            has_policy=row["has_policy"],
            lost=send_marks.lost_of_wire(
                row["lost_seconds"],
                row["accepted_seconds"],
                is_of_this_life=row["is_of_this_life"],
                was_found_missing=row["was_found_missing"],
            ),
        )
        for row in rows
    }


async def _record(
    connection: asyncpg.Connection, records: Sequence[LeasedValue[WireRecord]]
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
        [wire.transaction_id for wire in versions.values()],
        [record.command.trace for record in records],
        [wire.reason_detail for wire in versions.values()],
    )
    return {row["command_id"]: versions[row["command_id"]] for row in rows}


async def _record_alone(database: Database, record: LeasedValue[WireRecord]) -> WireRecord:
    """One, which waits for the wire's row."""
    async with inbox.fenced(database, record.command) as connection:
        return await save_unless_moved_on(connection, [record.value])


async def save_unless_moved_on(
    connection: AsyncConnection, versions: Sequence[WireRecord]
) -> WireRecord:
    """Save the versions of one wire, with their events. The wire as it then is: where it has moved on meanwhile,
    nothing is saved, and a contradiction is stored for reconciliation in the same transaction.

    By ordinary statements: the wire as it stands, with its history, decides whether there is a contradiction.
    """
    version = versions[-1]
    if await wires.save(connection, *versions):
        return version
    transaction_id = version.transaction_id
    standing = (await wires.lock(connection, [transaction_id]))[transaction_id]
    if standing.was_accepted != version.was_accepted:
        await contradictions.add(
            connection,
            Contradiction(
                "provider_contradicts_record",
                str(transaction_id),
                ours=standing.state.value,
                theirs=version.state.value,
            ),
        )
    return standing


INTENT = fenced_write("intend", _intend, records_events=True)
"""A new wire, whose first send begins with the commit, unless its customer has a policy. Its id is its command's."""

RECORD = Write("record", _record, _record_alone, records_events=True)
"""The next version of the wire that the command sends. The answer: the wire as it then is, with what was recorded
meanwhile.
"""
