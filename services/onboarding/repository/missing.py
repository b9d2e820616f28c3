"""Which customers and persons that a provider holds this database does not know to be there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    bindparam,
    case,
    column,
    exists,
    func,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.customers import CustomerStatus
from libs.contracts.ids import parse_id
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Compared
from libs.persistence.tables import UUID_TYPE
from services.onboarding.states import FINAL
from services.onboarding.tables import customers, persons, saga_steps

_C = customers.c


def _comparison(known: ColumnElement[Any], is_settled: ColumnElement[bool]) -> Select[Any]:
    """For each id of a customer or person, what its customer's row says.

    Args:
        known: the creation of the provider's record is stored, or intended.
        is_settled: the customer was not touched since a moment at which the provider had all of it. A search from the
            newest record back to such a customer has seen all that came after.
    """
    ids = func.unnest(bindparam("ids", type_=ARRAY(UUID_TYPE)))
    asked = ids.table_valued(column("id", UUID_TYPE)).render_derived(name="asked")
    said = select(known.label("known"), case((is_settled, _C.updated_at)).label("settled_at"))
    # Two parts, each of which an index finds: an "or" of them reads all customers for each id.
    found = union_all(
        said.where(_C.customer_id == asked.c.id).correlate(asked),
        said.join_from(customers, persons, persons.c.customer_id == _C.customer_id)
        .where(persons.c.person_id == asked.c.id)
        .correlate(asked),
    ).lateral("found")
    return (
        select(
            asked.c.id,
            func.bool_or(found.c.known).label("known"),
            func.max(found.c.settled_at).label("settled_at"),
        )
        .select_from(asked.outerjoin(found, true()))
        .group_by(asked.c.id)
    )


_AT_IDENTITY = _comparison(true(), _C.status != CustomerStatus.PENDING.value)
_IS_AT_CORE = _C.core_id.is_not(None)
# Of a customer that came to its end the steps are purged, and nothing is sent to core banking any more.
_AT_CORE = _comparison(
    or_(
        _IS_AT_CORE,
        _C.status.in_([status.value for status in FINAL]),
        exists().where(
            saga_steps.c.customer_id == _C.customer_id,
            saga_steps.c.tenant == _C.tenant,
            saga_steps.c.name.like("create_core%"),
        ),
    ),
    _IS_AT_CORE,
)


async def compare_at_identity(
    connection: AsyncConnection, ids: Sequence[str], trusted_until: datetime
) -> Compared:
    """Ids that the identity provider holds, with those of customers and persons here. See `continuity`."""
    return await _compare(connection, _AT_IDENTITY, ids, trusted_until)


async def compare_at_core(
    connection: AsyncConnection, ids: Sequence[str], trusted_until: datetime
) -> Compared:
    """Ids that core banking holds, with those of customers and persons here that were sent there."""
    return await _compare(connection, _AT_CORE, ids, trusted_until)


async def _compare(
    connection: AsyncConnection, statement: Select[Any], ids: Sequence[str], trusted_until: datetime
) -> Compared:
    """Of any tenant: a provider holds the customers of all tenants and knows of none. An id that none of ours can look
    like names a record that was not made by this system.
    """
    ours = [known for known in map(parse_id, ids) if known is not None]
    rows = (await connection.execute(statement, {"ids": ours})).all()
    return Compared(
        missing=[str(row.id) for row in rows if not row.known],
        reaches_back=any(
            row.settled_at is not None and row.settled_at < trusted_until for row in rows
        ),
    )
