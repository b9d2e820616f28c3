"""Whose the records of providers are, of all tenants: for reconciliation with providers who do not know our ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    CompoundSelect,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    select,
    union,
)

from libs.contracts.ids import parse_id
from libs.contracts.reconciliation import Holder
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.tables import accounts, customers, external_accounts, persons, saga_steps

_IDS = any_(bindparam("ids", type_=ARRAY(Text)))


def _holders(
    record_id: Column[Any], customer_id: Column[Any], party_id: ColumnElement[Any] | None = None
) -> Select[Any]:
    return select(
        record_id.label("record_id"),
        cast(customer_id, Text).label("customer_id"),
        cast(customer_id if party_id is None else party_id, Text).label("party_id"),
    ).where(record_id == _IDS, customer_id.is_not(None))


_BY_RECORD_IDS: CompoundSelect[Any] = union(
    _holders(customers.c.identity_id, customers.c.customer_id),
    _holders(customers.c.core_id, customers.c.customer_id),
    _holders(persons.c.identity_id, persons.c.customer_id, persons.c.person_id),
    _holders(persons.c.core_id, persons.c.customer_id, persons.c.person_id),
    _holders(accounts.c.account_id, accounts.c.customer_id),
    _holders(external_accounts.c.external_account_id, external_accounts.c.customer_id),
    select(
        cast(saga_steps.c.idempotency_key, Text),
        cast(saga_steps.c.customer_id, Text),
        cast(saga_steps.c.customer_id, Text),
    ).where(saga_steps.c.idempotency_key == any_(bindparam("keys", type_=ARRAY(UUID_TYPE)))),
)


async def by_record_ids(connection: AsyncConnection, ids: Sequence[str]) -> list[Holder]:
    """Ids of all kinds of records, of both providers, and idempotency keys of steps. Each is found by an index of its
    column.
    """
    keys = [key for one in ids if (key := parse_id(one)) is not None]
    rows = await connection.execute(_BY_RECORD_IDS, {"ids": list(ids), "keys": keys})
    return [Holder(**row._mapping) for row in rows]
