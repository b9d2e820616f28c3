"""Customers of all tenants with their persons and accounts, and what callers were told: for reconciliation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import ARRAY, Row, Select, Text, any_, bindparam, cast, select

from libs.contracts.customers import Business, CustomerStatus
from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.model import Model
from libs.contracts.onboarding_operations import ADD_EXTERNAL_BANK_ACCOUNT, ONBOARD_CUSTOMER
from libs.contracts.reconciliation import (
    AnsweredCommand,
    RecordedAccount,
    RecordedCustomer,
    RecordedExternalAccount,
    RecordedParty,
)
from libs.handling.stored_commands import reply_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.ids import derived
from services.onboarding.models import PersonDetails
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import customers, persons
from services.onboarding.repository.recorded_external_accounts import ExternalAccountReader
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.vault import Vault
from services.onboarding.states import overall
from services.onboarding.tables import accounts, inbox
from services.onboarding.tables import customers as customer_table
from services.onboarding.tables import persons as person_table

FIRST_ID = UUID(int=0)
"""Below every id that is given."""
UNDECIDED = frozenset(
    {CustomerStatus.PENDING, CustomerStatus.PENDING_REVIEW, CustomerStatus.AWAITING_DOCUMENTS}
)
SENSITIVE = ("ein", "tin", "date_of_birth")
TOLD = (ONBOARD_CUSTOMER.name, ADD_EXTERNAL_BANK_ACCOUNT.name)
"""The operations whose answers name what was made at providers."""

_CUSTOMERS, _PERSONS, _ACCOUNTS, _INBOX = (
    customer_table.c,
    person_table.c,
    accounts.c,
    inbox.c,
)
_IDS = any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
_OPERATIONS = any_(bindparam("operations", type_=ARRAY(Text)))
_CUSTOMER = select(
    _CUSTOMERS.tenant,
    _CUSTOMERS.customer_id,
    _CUSTOMERS.status,
    cast(_CUSTOMERS.business, Text).label("business"),
    _CUSTOMERS.identity_id,
    _CUSTOMERS.verification["status"].astext.label("identity_status"),
    _CUSTOMERS.core_id,
    _CUSTOMERS.updated_at,
)
_PAGE = (
    _CUSTOMER.where(_CUSTOMERS.customer_id > bindparam("after"))
    .order_by(_CUSTOMERS.customer_id)
    .limit(bindparam("limit"))
)
_BY_IDS = _CUSTOMER.where(_CUSTOMERS.customer_id == _IDS)
_PERSONS_OF = (
    select(
        _PERSONS.tenant,
        _PERSONS.person_id,
        _PERSONS.customer_id,
        cast(_PERSONS.details, Text).label("details"),
        _PERSONS.identity_id,
        _PERSONS.verification["status"].astext.label("identity_status"),
        _PERSONS.core_id,
    )
    .where(_PERSONS.customer_id == _IDS)
    .order_by(_PERSONS.customer_id, _PERSONS.position)
)
_ACCOUNTS_OF = (
    select(
        _ACCOUNTS.customer_id,
        _ACCOUNTS.account_id,
        _ACCOUNTS.account_number,
        _ACCOUNTS.account_group,
        _ACCOUNTS.status,
    )
    .where(_ACCOUNTS.customer_id == _IDS)
    .order_by(_ACCOUNTS.account_id)
)
_IS_AT_WORK = (_INBOX.finished_at.is_(None), _INBOX.parked_at.is_(None))
_OPEN_KEYS = (
    select(_INBOX.ordering_key)
    .distinct()
    .where(*_IS_AT_WORK, _INBOX.ordering_key == any_(bindparam("keys", type_=ARRAY(Text))))
)
# An onboarding has no ordering key: its customer's id is derived from the command and the message that brought it.
_OPEN_ONBOARDINGS = select(_INBOX.command_id, _INBOX.message_id).where(
    *_IS_AT_WORK, _INBOX.operation == ONBOARD_CUSTOMER.name
)
_ANSWER: Select[Any] = select(
    _INBOX.command_id, _INBOX.operation, _INBOX.ordering_key, _INBOX.reply
).where(_INBOX.operation == _OPERATIONS, _INBOX.reply.is_not(None))
_ANSWERS_PAGE = (
    _ANSWER.where(_INBOX.command_id > bindparam("after"))
    .order_by(_INBOX.command_id)
    .limit(bindparam("limit"))
)
_ANSWERS_BY_IDS = _ANSWER.where(_INBOX.command_id == _IDS)


class CustomerReader:
    """Reads customers with their persons and accounts, in one snapshot, so that the parts belong together.

    Sensitive fields are opened. `external_accounts`: whether those are read too, see `PageCustomers`.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._external_accounts = ExternalAccountReader(vault)

    async def page(
        self,
        connection: AsyncConnection,
        after: UUID | None,
        limit: int,
        *,
        external_accounts: bool = False,
    ) -> list[RecordedCustomer]:
        """In the order of their ids."""
        rows = await connection.execute(_PAGE, {"after": after or FIRST_ID, "limit": limit})
        return await self._complete(connection, rows.all(), external_accounts=external_accounts)

    async def by_ids(
        self, connection: AsyncConnection, ids: Sequence[UUID], *, external_accounts: bool = False
    ) -> list[RecordedCustomer]:
        rows = await connection.execute(_BY_IDS, {"ids": list(ids)})
        return await self._complete(connection, rows.all(), external_accounts=external_accounts)

    async def _complete(
        self, connection: AsyncConnection, rows: Sequence[Row[Any]], *, external_accounts: bool
    ) -> list[RecordedCustomer]:
        customer_ids = [row.customer_id for row in rows]
        linked: dict[str, list[RecordedExternalAccount]] = defaultdict(list)
        if external_accounts:
            for one in await self._external_accounts.of_customers(connection, customer_ids):
                linked[one.customer_id].append(one)
        ids = {"ids": customer_ids}
        parties = _by_customer(await connection.execute(_PERSONS_OF, ids))
        owned = _by_customer(await connection.execute(_ACCOUNTS_OF, ids))
        busy = await _with_open_commands(connection, rows, parties)
        return [
            RecordedCustomer(
                tenant=row.tenant,
                customer_id=str(row.customer_id),
                status=row.status,
                command_open=row.customer_id in busy,
                parties=[
                    self._business(row),
                    *(self._person(person) for person in parties[row.customer_id]),
                ],
                accounts=[_account(account) for account in owned[row.customer_id]],
                external_accounts=linked[str(row.customer_id)],
                updated_at=row.updated_at,
            )
            for row in rows
        ]

    def _business(self, row: Row[Any]) -> RecordedParty:
        context = customers.context_of(row.customer_id)
        business = self._vault.open(Business, row.business, context)
        return _party(row.customer_id, "business", row, business)

    def _person(self, row: Row[Any]) -> RecordedParty:
        context = persons.context_of(row.tenant, row.person_id)
        person = self._vault.open(PersonDetails, row.details, context)
        return _party(row.person_id, "person", row, person)


async def page_of_answers(
    connection: AsyncConnection, after: UUID | None, limit: int
) -> tuple[list[AnsweredCommand], str | None]:
    """Successful answers in the order of their commands' ids, and the last id that was read, refusals included."""
    values = {"after": after or FIRST_ID, "operations": list(TOLD), "limit": limit}
    rows = (await connection.execute(_ANSWERS_PAGE, values)).all()
    last = str(rows[-1].command_id) if len(rows) == limit else None
    return _answers(rows), last


async def answers_by_ids(connection: AsyncConnection, ids: Sequence[UUID]) -> list[AnsweredCommand]:
    rows = await connection.execute(_ANSWERS_BY_IDS, {"ids": list(ids), "operations": list(TOLD)})
    return _answers(rows)


async def _with_open_commands(
    connection: AsyncConnection,
    rows: Sequence[Row[Any]],
    persons_of: Mapping[UUID, Sequence[Row[Any]]],
) -> Collection[UUID]:
    """Those of the customers of which some command is at work, their onboarding included.

    An onboarding that waits for a verdict, which may take days, is not: it sends nothing until the verdict is there.
    """
    by_key = {ordering_key(row.tenant, row.customer_id): row.customer_id for row in rows}
    keys = await connection.execute(_OPEN_KEYS, {"keys": list(by_key)})
    busy = {by_key[key] for key in keys.scalars()}
    waiting = {
        row.customer_id for row in rows if _waits_for_verdict([row, *persons_of[row.customer_id]])
    }
    opened = await connection.execute(_OPEN_ONBOARDINGS)
    for command_id, message_id in opened:
        onboarded = {derived(saga, "customer") for saga in saga_ids_of(command_id, message_id)}
        busy |= onboarded - waiting
    return busy


def _waits_for_verdict(parties: Iterable[Row[Any]]) -> bool:
    """Whether the identity provider has all that it has to decide about, and has not decided."""
    verdicts = [party.identity_status for party in parties]
    if None in verdicts:
        return False
    return overall(CustomerStatus(verdict) for verdict in verdicts) in UNDECIDED


def _party(customer_id: UUID, kind: Any, row: Row[Any], details: Model) -> RecordedParty:
    fields = details.model_dump()
    sensitive = {name: fields.pop(name, None) for name in SENSITIVE}
    return RecordedParty(
        customer_id=str(customer_id),
        kind=kind,
        identity_id=row.identity_id,
        identity_status=row.identity_status,
        core_id=row.core_id,
        fields=fields,
        **{name: None if value is None else str(value) for name, value in sensitive.items()},
    )


def _account(row: Row[Any]) -> RecordedAccount:
    return RecordedAccount(
        account_id=row.account_id,
        account_number=row.account_number,
        account_group=row.account_group,
        status=row.status,
    )


def _by_customer(rows: Iterable[Row[Any]]) -> dict[UUID, list[Row[Any]]]:
    grouped: dict[UUID, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        grouped[row.customer_id].append(row)
    return grouped


def _answers(rows: Iterable[Row[Any]]) -> list[AnsweredCommand]:
    """Answers that this release cannot read are left out, as those are whose retention has ended: nothing new is found
    of them, and a difference that such an answer proved stays open until it is explained.
    """
    answers = []
    for row in rows:
        reply = reply_of(row.reply)
        if reply is not None and reply.error is None and reply.result:
            try:
                answers.append(_answer(row, decode(bytes(reply.result))["data"]))
            except (NotExactJson, KeyError, TypeError, ValidationError):
                continue  # its data are of another release
    return answers


def _answer(row: Row[Any], data: Any) -> AnsweredCommand:
    if row.operation == ONBOARD_CUSTOMER.name:
        customer_id = data["business"]["customer_id"]
        account_id = data["business"]["account_id"]
        external = data["external_bank_account"]["external_bank_account_id"]
    else:
        customer_id = row.ordering_key.rpartition("/")[2]
        account_id, external = None, data["external_bank_account_id"]
    return AnsweredCommand(
        command_id=str(row.command_id),
        operation=row.operation,
        customer_id=customer_id,
        account_id=account_id,
        external_account_id=external,
    )
