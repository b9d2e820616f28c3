"""What an id names in onboarding, of any tenant: for operators. Each column is unique or has an index."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Text,
    bindparam,
    cast,
    literal,
    select,
    union,
    union_all,
)

from libs.contracts.ids import parse_id
from libs.contracts.operating.search import FoundId, Kind
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.tables import (
    accounts,
    customers,
    external_accounts,
    inbox,
    persons,
    saga_steps,
)

SERVICE = "onboarding"
MOST = 50

_TEXT = bindparam("text", type_=Text)
_ID = bindparam("id", type_=UUID_TYPE)


def _of(
    kind: Kind,
    shown: ColumnElement[Any],
    table: Any,
    condition: ColumnElement[bool],
    label: ColumnElement[Any],
) -> Select[Any]:
    return select(
        literal(kind.value).label("kind"),
        cast(shown, Text).label("id"),
        table.c.tenant.label("tenant"),
        cast(table.c.customer_id, Text).label("customer_id"),
        label.label("label"),
        cast(None, Text).label("request_id"),
    ).where(condition)


def _customer(column: Column[Any], value: ColumnElement[Any]) -> Select[Any]:
    name = customers.c.business["business_name"].astext
    return _of(Kind.CUSTOMER, customers.c.customer_id, customers, column == value, name)


def _person(column: Column[Any], value: ColumnElement[Any]) -> Select[Any]:
    name = persons.c.details["first_name"].astext + " " + persons.c.details["last_name"].astext
    return _of(Kind.PERSON, persons.c.customer_id, persons, column == value, name)


def _external_account(column: Column[Any], value: ColumnElement[Any]) -> Select[Any]:
    name = external_accounts.c.details["bank_name"].astext
    return _of(
        Kind.EXTERNAL_ACCOUNT,
        external_accounts.c.external_account_id,
        external_accounts,
        column == value,
        name,
    )


def _command(condition: ColumnElement[bool]) -> Select[Any]:
    return select(
        literal(Kind.COMMAND.value).label("kind"),
        cast(inbox.c.command_id, Text).label("id"),
        cast(None, Text).label("tenant"),
        cast(None, Text).label("customer_id"),
        inbox.c.operation.label("label"),
        inbox.c.request_id,
    ).where(condition)


_BY_TEXT = union(
    _customer(customers.c.identity_id, _TEXT),
    _customer(customers.c.core_id, _TEXT),
    _person(persons.c.identity_id, _TEXT),
    _person(persons.c.core_id, _TEXT),
    _external_account(external_accounts.c.external_account_id, _TEXT),
    _of(
        Kind.ACCOUNT,
        accounts.c.account_id,
        accounts,
        accounts.c.account_id == _TEXT,
        accounts.c.account_group,
    ),
    _command(inbox.c.request_id == _TEXT),
).limit(MOST)
_BY_ID = union_all(
    _customer(customers.c.customer_id, _ID),
    _person(persons.c.person_id, _ID),
    _external_account(external_accounts.c.draft_id, _ID),
    _of(
        Kind.SAGA,
        saga_steps.c.saga_id,
        saga_steps,
        saga_steps.c.saga_id == _ID,
        saga_steps.c.operation,
    ).distinct(),
    _command(inbox.c.command_id == _ID),
).limit(MOST)


async def find(connection: AsyncConnection, text: str) -> list[FoundId]:
    rows = list(await connection.execute(_BY_TEXT, {"text": text}))
    wanted: UUID | None = parse_id(text)
    if wanted is not None:
        rows += await connection.execute(_BY_ID, {"id": wanted})
    return [
        FoundId(
            service=SERVICE,
            kind=Kind(row.kind),
            id=row.id or text,
            tenant=row.tenant,
            customer_id=row.customer_id,
            label=row.label,
            request_id=row.request_id,
        )
        for row in rows
    ]
