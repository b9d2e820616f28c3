"""What the tables of customers and their parts have in common: a row is named by its tenant and one more column."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Cast, Column, Select, Table, Text, bindparam, cast, func, select, update
from sqlalchemy.dialects.postgresql import JSONB

from libs.persistence.async_engine import AsyncConnection

TENANT, KEY = "row_tenant", "row_key"


def json_of(parameter: str) -> Cast[Any]:
    """A parameter that is a JSON text, for a column of JSON."""
    return cast(bindparam(parameter, type_=Text), JSONB)


class TenantRows:
    """Statements that change one row of a tenant, by its key.

    Args:
        key: names a row among those of its tenant.
        touched: has `updated_at`, which every change sets.
    """

    def __init__(self, table: Table, key: Column[UUID], *, touched: bool = False) -> None:
        changed = update(table).where(
            table.c.tenant == bindparam(TENANT), key == bindparam(KEY, type_=key.type)
        )
        self.update = changed.values(updated_at=func.clock_timestamp()) if touched else changed
        """An update of one row: `values(…)` says of what."""
        self._next_sequence = self.update.values(sequence=table.c.sequence + 1).returning(
            table.c.sequence
        )

    async def change(
        self, connection: AsyncConnection, statement: Any, tenant: str, key: UUID, **values: Any
    ) -> None:
        """Execute an update that was made of `update`."""
        await connection.execute(statement, {TENANT: tenant, KEY: key, **values})

    async def next_sequence(self, connection: AsyncConnection, tenant: str, key: UUID) -> int:
        """The number of the row's next event, under the lock of the row."""
        rows = await connection.execute(self._next_sequence, {TENANT: tenant, KEY: key})
        return int(rows.scalar_one())


def customer_by(table: Table, column: Column[Any]) -> Select[UUID]:
    """The customer of the tenant's row with this value, which is one row's at most."""
    return select(table.c.customer_id).where(
        table.c.tenant == bindparam("tenant"), column == bindparam("value", type_=column.type)
    )


async def find_customer(
    connection: AsyncConnection, statement: Select[UUID], tenant: str, value: UUID | str
) -> UUID | None:
    """Execute what `customer_by` made."""
    rows = await connection.execute(statement, {"tenant": tenant, "value": value})
    return rows.scalar_one_or_none()
