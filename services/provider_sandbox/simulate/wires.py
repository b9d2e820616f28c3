"""The receiving bank acts on wires."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Body, Nothing
from services.provider_sandbox.wires import records, settling


class Why(Body):
    reason: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """None: the usual sentence."""


async def complete(connection: Connection, transaction_id: str, _: Nothing) -> object:
    wire = await records.lock(connection, transaction_id)
    return records.shape(await settling.complete(connection, wire))


async def reject(connection: Connection, transaction_id: str, body: Why) -> object:
    wire = await records.lock(connection, transaction_id)
    return records.shape(await settling.reject(connection, wire, body.reason or settling.REJECTED))


async def send_back(connection: Connection, transaction_id: str, body: Why) -> object:
    wire = await records.lock(connection, transaction_id)
    return records.shape(
        await settling.send_back(connection, wire, body.reason or settling.RETURNED)
    )
