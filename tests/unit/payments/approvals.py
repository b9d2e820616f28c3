"""What tests of limits, approvals and denied customers share."""

from __future__ import annotations

from uuid import UUID

import msgspec
from sqlalchemy import text

from libs.contracts.principal import Family, Principal
from services.payments.models import WireRecord
from services.payments.repository import wires
from tests.unit.payments.bench import Bench

OPERATOR = Principal("", "", Family.OPERATOR, "sub_operator", operator="ada")


def other_key(bench: Bench, name: str) -> Principal:
    return msgspec.structs.replace(bench.owner, subscription_key=name)


async def wire_of(bench: Bench, transaction_id: UUID) -> WireRecord:
    async with bench.database.transaction() as connection:
        found = await wires.find_any(connection, transaction_id)
    assert found is not None
    return found


async def events_of(bench: Bench, transaction_id: UUID) -> list[str]:
    async with bench.database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT type FROM outbox WHERE resource_id = :id ORDER BY sequence"),
            {"id": str(transaction_id)},
        )
        return [row.type for row in rows]


def sent(bench: Bench) -> int:
    return bench.core.received["send_wire"]
