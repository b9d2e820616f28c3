"""What the tables of a customer's parts have in common: a row is named by its tenant and one more column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True)
class Table:
    """`name` and `key` are constants of ours, and so is what `change` is told; all else is bound.

    Args:
        touch: set by every change besides.
    """

    name: str
    key: str
    touch: str = ""

    async def change(
        self, connection: AsyncConnection, tenant: str, key: UUID, change: str, **values: Any
    ) -> None:
        """Set columns of one row."""
        await connection.execute(
            text(f"UPDATE {self.name} SET {change}{self._touch} WHERE {self._row}"),  # noqa: S608
            {"tenant": tenant, "key": key, **values},
        )

    async def next_sequence(self, connection: AsyncConnection, tenant: str, key: UUID) -> int:
        """The number of the row's next event, under the lock of the row."""
        rows = await connection.execute(
            text(
                f"UPDATE {self.name} SET sequence = sequence + 1{self._touch}"  # noqa: S608
                f" WHERE {self._row} RETURNING sequence"
            ),
            {"tenant": tenant, "key": key},
        )
        return int(rows.scalar_one())

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, column: str, value: UUID | str
    ) -> UUID | None:
        """The customer of the tenant's row with this value, which is one row's at most."""
        rows = await connection.execute(
            text(
                f"SELECT customer_id FROM {self.name}"  # noqa: S608
                f" WHERE tenant = :tenant AND {column} = :value"
            ),
            {"tenant": tenant, "value": value},
        )
        found: UUID | None = rows.scalar_one_or_none()
        return found

    @property
    def _row(self) -> str:
        return f"tenant = :tenant AND {self.key} = :key"

    @property
    def _touch(self) -> str:
        return f", {self.touch}" if self.touch else ""
