"""The wires that commands made, approved or canceled, with the times of their sends, of any tenant: for operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import any_, bindparam, select, union
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.payments.models import WireRecord
from services.payments.repository.stored_wires import by_ids
from services.payments.tables import wires as table

_IDS = bindparam("ids", type_=ARRAY(UUID_TYPE))
_SENDS = union(
    *(
        select(table.c.transaction_id, table.c.send_begun_at, table.c.last_sent_at).where(
            column == any_(_IDS)
        )
        for column in (table.c.transaction_id, table.c.approved_by)
    )
)


@dataclass(frozen=True, slots=True)
class RequestedWire:
    """A wire. `send_begun_at` and `last_sent_at` as the table has them."""

    wire: WireRecord
    send_begun_at: datetime | None
    last_sent_at: datetime | None


async def find(connection: AsyncConnection, ids: Collection[UUID]) -> list[RequestedWire]:
    """Of the ids some are of wires, some of commands that approved one: as many wires as ids at most."""
    rows = await connection.execute(_SENDS, {"ids": list(ids)})
    sends = {row.transaction_id: (row.send_begun_at, row.last_sent_at) for row in rows}
    return [
        RequestedWire(wire, *sends[wire.transaction_id])
        for wire in await by_ids(connection, [*sends])
    ]
