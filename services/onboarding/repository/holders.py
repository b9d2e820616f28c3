"""Whose the records of providers are, of all tenants: for reconciliation with providers who do not know our ids, and
for operators who say what a provider answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

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
    func,
    literal,
    or_,
    select,
    union,
)

from libs.contracts.customers import CustomerStatus
from libs.contracts.ids import parse_id
from libs.contracts.reconciliation import Holder
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.step_cases import is_refused_compensation
from services.onboarding.states import FINAL
from services.onboarding.step_answers import RECORD_IDS
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


_LOCK = select(
    func.pg_advisory_xact_lock(
        func.hashtext("provider record"), func.hashtext(bindparam("record_id", type_=Text))
    )
)
_OF_STEPS = select(cast(saga_steps.c.customer_id, Text)).where(
    or_(*(saga_steps.c.result[field].astext == bindparam("record_id") for field in RECORD_IDS))
)
_REFUSED = saga_steps.alias("refused")
# What core banking answers is recorded with the customer when the last step of its opening is done. The steps under
# way, the customers that are not opened and the refused compensations are found by indexes. For the other customers
# that were denied all steps would be read; their records are closed at the bank.
_OTHERS_STEPS: CompoundSelect[Any] = union(
    _OF_STEPS.where(
        saga_steps.c.customer_id != bindparam("of_customer", type_=UUID_TYPE),
        saga_steps.c.state == literal("intended", literal_execute=True),
        saga_steps.c.resolution == "done",
    ),
    _OF_STEPS.join_from(
        customers, saga_steps, saga_steps.c.customer_id == customers.c.customer_id
    ).where(
        customers.c.customer_id != bindparam("of_customer"),
        customers.c.core_id.is_(None),
        customers.c.status.in_(
            [each.value for each in CustomerStatus if each not in (CustomerStatus.APPROVED, *FINAL)]
        ),
        saga_steps.c.state == "done",
    ),
    _OF_STEPS.join_from(
        _REFUSED, saga_steps, saga_steps.c.customer_id == _REFUSED.c.customer_id
    ).where(
        _REFUSED.c.customer_id != bindparam("of_customer"),
        is_refused_compensation(_REFUSED),
        saga_steps.c.state == "done",
    ),
)


async def other_holder(
    connection: AsyncConnection, record_id: str, customer_id: UUID
) -> str | None:
    """The id of another customer, of any tenant, that has this record of a provider, also by a step of an opening that
    is under way or has a refused compensation to be settled. Until the end of the transaction no other one is answered
    about this record.
    """
    await connection.execute(_LOCK, {"record_id": record_id})
    holders = [one.customer_id for one in await by_record_ids(connection, [record_id])]
    steps = await connection.execute(
        _OTHERS_STEPS, {"record_id": record_id, "of_customer": customer_id}
    )
    others = {*holders, *steps.scalars()} - {str(customer_id)}
    return min(others, default=None)
