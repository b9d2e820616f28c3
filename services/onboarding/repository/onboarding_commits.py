"""The commits by which an application becomes a customer, each for a group of onboardings.

Plain SQL constants over asyncpg. Each commit is one transaction, fenced by the leases of its commands, that also
advances their sagas (`step_commits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import asyncpg

from libs.contracts.customers import CustomerStatus
from libs.contracts.events import Event
from libs.handling.group_commit import Write
from libs.persistence import leased_writes
from libs.persistence.engine import Database
from libs.persistence.inbox import Leased
from libs.persistence.leased_writes import LeasedValue
from services.onboarding import events, states
from services.onboarding.models import CustomerFile
from services.onboarding.repository import customer_files
from services.onboarding.repository.customer_files import StoredCustomer
from services.onboarding.repository.ein_holds import EIN_TAKEN
from services.onboarding.repository.step_commits import (
    Advance,
    advance,
    commit_of,
    in_transaction,
)
from services.onboarding.repository.steps import Begun


class ApplicationConflict(Exception):
    """Another customer of the tenant has the EIN, or has or is one of the ids of persons; the message says which.

    `customer_id`: that customer's; None when it has just let go of the EIN. The message is then not to be told, and the
    application can be recorded.
    """

    def __init__(self, message: str, customer_id: UUID | None) -> None:
        super().__init__(message)
        self.customer_id = customer_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPerson:
    """`details`: sealed, as JSON."""

    person_id: UUID
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application to be stored, with the intent of its first step. JSON is sealed."""

    advance: Advance
    ein_digests: Sequence[bytes]
    ein_last_four: str
    business: str
    persons: Sequence[NewPerson]
    draft_id: UUID
    draft: str
    number_last_four: str
    number_digest: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """What a commit left of a customer, and the attempt at the step that it intends."""

    customer: StoredCustomer
    begun: Begun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What core banking gave of a customer: ids of its persons by ours.

    Args:
        leaves_pending: the customer was pending until now.
    """

    advance: Advance
    leaves_pending: bool
    core_id: str
    persons: Mapping[UUID, str]
    draft_id: UUID
    external_account_id: str
    account_id: str
    account_number: str

    @property
    def customer_id(self) -> UUID:
        return self.advance.saga.customer_id


# An application is left out whose customer is there, whose EIN or person another customer has, or one of whose persons
# has the id of a business. Rows are inserted in the order of their keys, so that two groups wait for one another and
# never for each other.
_RECORD = """
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[],
            $8::uuid[], $9::text[], $10::text[], $11::bytea[])
            AS a (command_id, lease, tenant, customer_id, saga_id, ein_last_four, business, draft_id, draft,
            number_last_four, number_digest) LIMIT cardinality($1)
    ), held AS (
        SELECT asked.* FROM asked JOIN inbox i ON i.command_id = asked.command_id AND i.lease = asked.lease
        ORDER BY asked.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    ), asked_person AS (
        SELECT * FROM unnest($12::uuid[], $13::text[], $14::uuid[], $15::smallint[], $16::text[])
            AS p (customer_id, tenant, person_id, position, details) LIMIT cardinality($12)
    ), asked_ein AS (
        SELECT * FROM unnest($17::uuid[], $18::text[], $19::bytea[])
            AS e (customer_id, tenant, ein_digest) LIMIT cardinality($17)
    ), new AS (
        SELECT held.* FROM held
        WHERE NOT EXISTS (SELECT FROM customers c WHERE c.customer_id = held.customer_id)
            AND NOT EXISTS (
                SELECT FROM asked_ein a JOIN ein_holds h ON h.tenant = a.tenant AND h.ein_digest = a.ein_digest
                WHERE a.customer_id = held.customer_id)
            AND NOT EXISTS (
                SELECT FROM asked_person a JOIN persons p ON p.tenant = a.tenant AND p.person_id = a.person_id
                WHERE a.customer_id = held.customer_id)
            AND NOT EXISTS (
                SELECT FROM asked_person a JOIN customers b ON b.tenant = a.tenant AND b.customer_id = a.person_id
                WHERE a.customer_id = held.customer_id)
    ), ein AS (
        INSERT INTO ein_holds (tenant, ein_digest, customer_id)
        SELECT a.tenant, a.ein_digest, a.customer_id
        FROM asked_ein a JOIN new ON new.customer_id = a.customer_id ORDER BY a.tenant, a.ein_digest
    ), customer AS (
        INSERT INTO customers (customer_id, tenant, saga_id, status, business, ein_last_four)
        SELECT customer_id, tenant, saga_id, 'pending', business::jsonb, ein_last_four FROM new
    ), person AS (
        INSERT INTO persons (tenant, person_id, customer_id, position, details)
        SELECT a.tenant, a.person_id, a.customer_id, a.position, a.details::jsonb
        FROM asked_person a JOIN new ON new.customer_id = a.customer_id ORDER BY a.tenant, a.person_id
    ), external_account AS (
        INSERT INTO external_accounts (draft_id, tenant, customer_id, details, number_last_four, number_digest,
            is_primary)
        SELECT draft_id, tenant, customer_id, draft::jsonb, number_last_four, number_digest, false FROM new
    )
    SELECT command_id FROM new
    """

# The numbers of the first events of a customer and its persons.
_ANNOUNCE = """
    WITH customer AS (
        UPDATE customers c SET sequence = c.sequence + 1
        WHERE c.customer_id = ANY($1::uuid[]) AND c.sequence = 0 RETURNING c.tenant, c.customer_id
    ), person AS (
        UPDATE persons p SET sequence = p.sequence + 1 FROM customer
        WHERE p.tenant = customer.tenant AND p.customer_id = customer.customer_id
    )
    SELECT customer_id FROM customer
    """

# Accounts are inserted in the order of `feeds.prepare_financial`, whose transaction writes many of them too.
_OPEN = """
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[])
            AS a (customer_id, tenant, core_id, draft_id, external_account_id, account_id, account_number)
        LIMIT cardinality($1)
    ), customer AS (
        UPDATE customers c SET core_id = asked.core_id, status = 'approved', refused_by_provider = false,
            sequence = c.sequence + 1, updated_at = clock_timestamp()
        FROM asked
        WHERE c.tenant = asked.tenant AND c.customer_id = asked.customer_id AND c.status = ANY($11::text[])
        RETURNING asked.*
    ), person AS (
        UPDATE persons p SET core_id = a.core_id,
            sequence = p.sequence + (p.customer_id = ANY($12::uuid[]))::integer
        FROM (
            SELECT * FROM unnest($8::text[], $9::uuid[], $10::text[]) AS a (tenant, person_id, core_id)
            LIMIT cardinality($8)
        ) AS a
        WHERE p.tenant = a.tenant AND p.person_id = a.person_id
    ), external_account AS (
        UPDATE external_accounts e SET external_account_id = customer.external_account_id, is_primary = true,
            linked_at = clock_timestamp(),
            sequence = e.sequence + 1
        FROM customer WHERE e.tenant = customer.tenant AND e.draft_id = customer.draft_id
        RETURNING e.customer_id
    ), account AS (
        INSERT INTO accounts (account_id, tenant, customer_id, account_number, account_group, status)
        SELECT account_id, tenant, customer_id, account_number, 'deposit', 'open' FROM customer
        ORDER BY account_id COLLATE "C"
        ON CONFLICT (account_id) DO UPDATE SET tenant = excluded.tenant, customer_id = excluded.customer_id,
            account_number = excluded.account_number, account_group = excluded.account_group
            WHERE accounts.customer_id IS NULL
        RETURNING customer_id
    )
    SELECT customer.customer_id FROM customer JOIN external_account USING (customer_id) JOIN account USING (customer_id)
    """

_MAY_BE_APPROVED = [
    status.value for status in CustomerStatus if states.may_follow(status, CustomerStatus.APPROVED)
]

_ADD_EVENTS = """
    INSERT INTO outbox (event_id, type, tenant, customer_id, resource_id, sequence, body, request_id, trace_context)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bytea[],
        $8::text[], $9::text[])
    """


async def _record_applications(
    connection: asyncpg.Connection, applications: Sequence[LeasedValue[Application]]
) -> Mapping[UUID, Stored]:
    """Those that were recorded."""
    wanted = [held.value for held in applications]
    names = [application.advance.saga for application in wanted]
    persons = [
        (name, position, person)
        for name, application in zip(names, wanted, strict=True)
        for position, person in enumerate(application.persons)
    ]
    eins = [
        (name, digest)
        for name, application in zip(names, wanted, strict=True)
        for digest in application.ein_digests
    ]
    rows = await connection.fetch(
        _RECORD,
        [held.command_id for held in applications],
        [held.command.lease for held in applications],
        [name.tenant for name in names],
        [name.customer_id for name in names],
        [name.saga_id for name in names],
        [application.ein_last_four for application in wanted],
        [application.business for application in wanted],
        [application.draft_id for application in wanted],
        [application.draft for application in wanted],
        [application.number_last_four for application in wanted],
        [application.number_digest for application in wanted],
        [name.customer_id for name, _, _ in persons],
        [name.tenant for name, _, _ in persons],
        [person.person_id for _, _, person in persons],
        [position for _, position, _ in persons],
        [person.details for _, _, person in persons],
        [name.customer_id for name, _ in eins],
        [name.tenant for name, _ in eins],
        [digest for _, digest in eins],
    )
    recorded = {row["command_id"] for row in rows}
    advances = [
        LeasedValue(held.command, held.value.advance)
        for held in applications
        if held.command_id in recorded
    ]
    return await _stored(connection, advances, await advance(connection, advances))


async def _announce(
    connection: asyncpg.Connection, advances: Sequence[LeasedValue[Advance]]
) -> Mapping[UUID, Begun | None]:
    begun = await advance(connection, advances)
    ids = [held.value.saga.customer_id for held in advances if held.command_id in begun]
    announced = [row["customer_id"] for row in await connection.fetch(_ANNOUNCE, ids)]
    found = await customer_files.read(connection, announced)
    await _add(
        connection,
        [
            _caused(event, held.command)
            for held in advances
            if (one := found.get(held.value.saga.customer_id)) is not None
            for event in events.of_creation(one.file)
        ],
    )
    return begun


async def _decide(
    connection: asyncpg.Connection, advances: Sequence[LeasedValue[Advance]]
) -> Mapping[UUID, Stored]:
    """The intent counts where all verifications are approved."""
    done = [
        LeasedValue(
            held.command,
            Advance(saga=held.value.saga, done=held.value.done, person=held.value.person),
        )
        for held in advances
    ]
    led = await advance(connection, done)
    leading = [held for held in advances if held.command_id in led]
    stored = await _stored(connection, leading, led)
    approved = [
        LeasedValue(held.command, Advance(saga=held.value.saga, intent=held.value.intent))
        for held in leading
        if stored[held.command_id].customer.file.verdict is CustomerStatus.APPROVED
    ]
    begun = await advance(connection, approved) if approved else {}
    return {
        command_id: Stored(one.customer, begun.get(command_id))
        for command_id, one in stored.items()
    }


async def _open(
    connection: asyncpg.Connection, openings: Sequence[LeasedValue[Opened]]
) -> Mapping[UUID, CustomerFile]:
    led = await advance(
        connection, [LeasedValue(held.command, held.value.advance) for held in openings]
    )
    leading = [held for held in openings if held.command_id in led]
    wanted = [held.value for held in leading]
    names = [opened.advance.saga for opened in wanted]
    persons = [
        (name.tenant, person_id, core_id)
        for name, opened in zip(names, wanted, strict=True)
        for person_id, core_id in opened.persons.items()
    ]
    rows = await connection.fetch(
        _OPEN,
        [name.customer_id for name in names],
        [name.tenant for name in names],
        [opened.core_id for opened in wanted],
        [opened.draft_id for opened in wanted],
        [opened.external_account_id for opened in wanted],
        [opened.account_id for opened in wanted],
        [opened.account_number for opened in wanted],
        [tenant for tenant, _, _ in persons],
        [person_id for _, person_id, _ in persons],
        [core_id for _, _, core_id in persons],
        _MAY_BE_APPROVED,
        [opened.customer_id for opened in wanted if opened.leaves_pending],
    )
    assert len(rows) == len(leading), "a customer is approved once, with an account of its own"
    found = await customer_files.read(connection, [name.customer_id for name in names])
    await _add(
        connection,
        [
            _caused(event, held.command)
            for held in leading
            for event in events.of_opening(
                found[held.value.customer_id].file, leaves_pending=held.value.leaves_pending
            )
        ],
    )
    return {held.command_id: found[held.value.advance.saga.customer_id].file for held in leading}


async def _stored(
    connection: asyncpg.Connection,
    advances: Sequence[LeasedValue[Advance]],
    begun: Mapping[UUID, Begun | None],
) -> dict[UUID, Stored]:
    found = await customer_files.read(
        connection, [held.value.saga.customer_id for held in advances]
    )
    return {
        held.command_id: Stored(found[held.value.saga.customer_id], begun[held.command_id])
        for held in advances
    }


async def _add(connection: asyncpg.Connection, recorded: Sequence[Event]) -> None:
    await connection.execute(
        _ADD_EVENTS,
        [event.event_id for event in recorded],
        [event.type for event in recorded],
        [event.tenant for event in recorded],
        [event.customer_id for event in recorded],
        [event.resource_id for event in recorded],
        [event.sequence for event in recorded],
        [event.body for event in recorded],
        [event.request_id for event in recorded],
        [event.trace for event in recorded],
    )


def _caused(event: Event, command: Leased) -> Event:
    return replace(event, request_id=command.request_id, trace=command.trace)


_PERSON_TAKEN = "A person or business with this id exists already."

_HOLDERS = """
    SELECT (SELECT customer_id FROM ein_holds WHERE tenant = $1 AND ein_digest = ANY($2::bytea[]) LIMIT 1) AS of_ein,
        coalesce(
            (SELECT customer_id FROM persons WHERE tenant = $1 AND person_id = ANY($3::uuid[]) LIMIT 1),
            (SELECT customer_id FROM customers WHERE tenant = $1 AND customer_id = ANY($3::uuid[]) LIMIT 1)
        ) AS of_person
    """


async def _record_application(database: Database, application: LeasedValue[Application]) -> Stored:
    """One, which waits for others that are being recorded with its EIN or persons; the stored one if it is there.

    Raises:
        ApplicationConflict: another customer has its EIN, or has or is a person of its.
    """
    name = application.value.advance.saga
    try:
        async with leased_writes.fenced(database, application.command) as connection:
            recorded = await _record_applications(connection, [application])
            known = {} if recorded else await customer_files.read(connection, [name.customer_id])
            of_ein, of_person = await _holders(connection, application.value)
    except asyncpg.UniqueViolationError as error:
        # Another application was committed between the look and the insert.
        if error.constraint_name not in ("ein_holds_pkey", "persons_pkey"):
            raise
        async with database.driver() as connection:
            of_ein, of_person = await _holders(connection, application.value)
        if error.constraint_name == "ein_holds_pkey":
            raise ApplicationConflict(EIN_TAKEN, of_ein) from error
        raise ApplicationConflict(_PERSON_TAKEN, of_person) from error
    if recorded:
        return recorded[application.command_id]
    if known:
        return Stored(known[name.customer_id], None)
    if of_ein is not None:
        raise ApplicationConflict(EIN_TAKEN, of_ein)
    raise ApplicationConflict(_PERSON_TAKEN, of_person)


async def _holders(
    connection: asyncpg.Connection, application: Application
) -> tuple[UUID | None, UUID | None]:
    """The customer that holds the application's EIN, and the one that has, or is, a person of it; None for neither."""
    persons = [person.person_id for person in application.persons]
    name = application.advance.saga
    return tuple(await connection.fetchrow(_HOLDERS, name.tenant, application.ein_digests, persons))


RECORD_APPLICATION = Write("application", in_transaction(_record_applications), _record_application)
ANNOUNCE = commit_of("announce", _announce, records_events=True)
DECIDE = commit_of("decide", _decide)
OPEN = commit_of("open", _open, records_events=True)
