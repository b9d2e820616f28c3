"""One commit of a saga that goes on: what its last step brought, and the intent of its next one.

A plain SQL constant over asyncpg, for the sagas of a group of commands. It is fenced by their leases, and leaves out a
command whose row is locked (SKIP LOCKED).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

import asyncpg

from libs.contracts.exact_json import encode
from libs.handling.group_commit import Write, fenced_write
from libs.persistence import leased_writes
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from services.onboarding.models import Verification
from services.onboarding.repository import verifications
from services.onboarding.repository.steps import (
    TIME_ORDERED,
    Begun,
    SagaName,
    begun,
    lost_sends_of_step,
)


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step that a provider carried out; `result` is its answer, as JSON values."""

    name: str
    result: Any


@dataclass(frozen=True, slots=True)
class Intent:
    """A step that is sent after the commit."""

    name: str
    idempotency_key: UUID
    compensation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What one commit of a saga records.

    Args:
        business: the identity provider's answer about the customer.
        person: its answer about a person, and which.
    """

    saga: SagaName
    done: StepDone | None = None
    intent: Intent | None = None
    business: Verification | None = None
    person: tuple[UUID, Verification] | None = None

    @property
    def customer_id(self) -> UUID:
        return self.saga.customer_id


_LOCK_FREE = """
    SELECT customer_id FROM customers WHERE customer_id = ANY($1::uuid[])
    ORDER BY customer_id FOR NO KEY UPDATE SKIP LOCKED
    """

_LOCK = "SELECT FROM customers WHERE customer_id = $1 FOR NO KEY UPDATE"

# `LIMIT cardinality(…)` leaves the arrays whole; PostgreSQL then takes them for one row, and finds each row by its key.
# Where the database may have gone back, the intent is as old as a send in the lost history may be, as in `steps`.
_ADVANCE = """
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS a (command_id, lease) LIMIT cardinality($1)
    ), held AS (
        SELECT asked.command_id,
            extract(epoch FROM clock_timestamp() - i.accepted_at)::double precision AS accepted_seconds
        FROM asked JOIN inbox i ON i.command_id = asked.command_id AND i.lease = asked.lease
        ORDER BY asked.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    ), life AS MATERIALIZED (
        SELECT lost_history_seconds() AS lost_seconds, least(lost_history_began_seconds(),
            extract(epoch FROM clock_timestamp())::double precision) AS lost_began_seconds
        WHERE cardinality($7::uuid[]) > 0
    ), done AS (
        UPDATE saga_steps s SET state = 'done', result = d.result::jsonb, recorded_at = clock_timestamp()
        FROM (
            SELECT * FROM unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[])
                AS d (command_id, saga_id, name, result) LIMIT cardinality($3)
        ) AS d JOIN held ON held.command_id = d.command_id
        WHERE s.saga_id = d.saga_id AND s.name = d.name
    ), verified_customer AS (
        UPDATE customers c SET verification = v.verification::jsonb, identity_id = v.identity_id,
            updated_at = clock_timestamp()
        FROM (
            SELECT * FROM unnest($16::uuid[], $17::text[], $18::uuid[], $19::text[], $20::text[])
                AS v (command_id, tenant, customer_id, verification, identity_id) LIMIT cardinality($16)
        ) AS v JOIN held ON held.command_id = v.command_id
        WHERE c.tenant = v.tenant AND c.customer_id = v.customer_id
    ), verified_person AS (
        UPDATE persons p SET verification = v.verification::jsonb, identity_id = v.identity_id
        FROM (
            SELECT * FROM unnest($21::uuid[], $22::text[], $23::uuid[], $24::text[], $25::text[])
                AS v (command_id, tenant, person_id, verification, identity_id) LIMIT cardinality($21)
        ) AS v JOIN held ON held.command_id = v.command_id
        WHERE p.tenant = v.tenant AND p.person_id = v.person_id
    ), intended AS (
        INSERT INTO saga_steps (saga_id, name, tenant, customer_id, operation, idempotency_key, compensation,
            command_id, first_sent_at)
        SELECT n.saga_id, n.name, n.tenant, n.customer_id, n.operation, n.idempotency_key, n.compensation, n.command_id,
            CASE WHEN life.lost_seconds IS NULL THEN clock_timestamp()
                WHEN n.is_new THEN clock_timestamp()
                    - make_interval(secs => least(life.lost_began_seconds, coalesce(held.accepted_seconds, 0)))
                ELSE clock_timestamp() - make_interval(secs => life.lost_began_seconds) END
        FROM (
            SELECT * FROM unnest($7::uuid[], $8::bool[], $9::uuid[], $10::text[], $11::text[], $12::uuid[], $13::text[],
                $14::uuid[], $15::bool[])
                AS n (command_id, is_new, saga_id, name, tenant, customer_id, operation, idempotency_key, compensation)
            LIMIT cardinality($7)
        ) AS n JOIN held ON held.command_id = n.command_id CROSS JOIN life
        ON CONFLICT (saga_id, name) DO NOTHING
        RETURNING command_id
    )
    SELECT held.command_id, held.accepted_seconds, intended.command_id IS NOT NULL AS is_intended,
        life.lost_seconds, life.lost_began_seconds, clock_timestamp() AS now
    FROM held LEFT JOIN intended ON intended.command_id = held.command_id LEFT JOIN life ON true
    """


async def advance(
    connection: asyncpg.Connection, advances: Sequence[LeasedValue[Advance]]
) -> dict[UUID, Begun | None]:
    """Of each command whose lease is held: the attempt at the step that it intends.

    None when it intends none, or a step that was intended before: `steps.take_up` tells what is known of that.
    """
    done = [(held, step) for held in advances if (step := held.value.done)]
    new = [(held, intent) for held in advances if (intent := held.value.intent)]
    business = [(held, answer) for held in advances if (answer := held.value.business)]
    person = [(held, *verified) for held in advances if (verified := held.value.person)]
    rows = await connection.fetch(
        _ADVANCE,
        [held.command_id for held in advances],
        [held.command.lease for held in advances],
        [held.command_id for held, _ in done],
        [held.value.saga.saga_id for held, _ in done],
        [step.name for _, step in done],
        [encode(step.result).decode() for _, step in done],
        [held.command_id for held, _ in new],
        [held.command_id.version == TIME_ORDERED for held, _ in new],
        [held.value.saga.saga_id for held, _ in new],
        [intent.name for _, intent in new],
        [held.value.saga.tenant for held, _ in new],
        [held.value.saga.customer_id for held, _ in new],
        [held.value.saga.operation for held, _ in new],
        [intent.idempotency_key for _, intent in new],
        [intent.compensation for _, intent in new],
        [held.command_id for held, _ in business],
        [held.value.saga.tenant for held, _ in business],
        [held.value.saga.customer_id for held, _ in business],
        [verifications.to_column(answer) for _, answer in business],
        [answer.identity_id for _, answer in business],
        [held.command_id for held, _, _ in person],
        [held.value.saga.tenant for held, _, _ in person],
        [person_id for _, person_id, _ in person],
        [verifications.to_column(answer) for _, _, answer in person],
        [answer.identity_id for _, _, answer in person],
    )
    return {row["command_id"]: _begun(row) if row["is_intended"] else None for row in rows}


def _begun(row: asyncpg.Record) -> Begun:
    lost = lost_sends_of_step(
        row["command_id"], row["lost_seconds"], row["lost_began_seconds"], row["accepted_seconds"]
    )
    return begun(None, None, lost, row["now"], has_no_known_send=True)


class OfCustomer(Protocol):
    @property
    def customer_id(self) -> UUID: ...


ItemT = TypeVar("ItemT")
PartT = TypeVar("PartT", bound=OfCustomer)
AnswerT = TypeVar("AnswerT")
Together = Callable[
    [asyncpg.Connection, Sequence[LeasedValue[ItemT]]], Awaitable[Mapping[UUID, AnswerT]]
]
"""See `group_commit.Write`."""


def in_transaction(together: Together[ItemT, AnswerT]) -> Together[ItemT, AnswerT]:
    async def write(
        connection: asyncpg.Connection, items: Sequence[LeasedValue[ItemT]]
    ) -> Mapping[UUID, AnswerT]:
        async with connection.transaction():
            return await together(connection, items)

    return write


def commit_of(
    name: str, together: Together[PartT, AnswerT], *, records_events: bool = False
) -> Write[LeasedValue[PartT], AnswerT]:
    """A write of several statements in one transaction, which has locked the customers.

    A group leaves out those whose customers are locked; that of one command alone waits for the locks of its row and
    of its customer.
    """

    async def of_free(
        connection: asyncpg.Connection, items: Sequence[LeasedValue[PartT]]
    ) -> Mapping[UUID, AnswerT]:
        rows = await connection.fetch(_LOCK_FREE, [item.value.customer_id for item in items])
        locked = {row["customer_id"] for row in rows}
        free = [item for item in items if item.value.customer_id in locked]
        return await together(connection, free) if free else {}

    async def alone(database: Database, item: LeasedValue[PartT]) -> AnswerT:
        async with leased_writes.fenced(database, item.command) as connection:
            await connection.execute(_LOCK, item.value.customer_id)
            answers = await together(connection, [item])
        return answers[item.command_id]

    return Write(name, in_transaction(of_free), alone, records_events)


ADVANCE = fenced_write("advance", advance)
