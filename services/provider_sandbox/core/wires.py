"""Wires at core banking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from services.provider_sandbox.amounts import WrittenAmount
from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import money
from services.provider_sandbox.operations import BatchedWrite, Body, NoQuery
from services.provider_sandbox.wires import records
from services.provider_sandbox.wires.sending import Order, send

Text = Annotated[str, Field(min_length=1, max_length=255)]

TRANSACTION_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class SendWire(Body):
    account_id: Text
    external_account_id: Text
    amount: WrittenAmount
    purpose: Text


def send_wire(takes: timedelta) -> BatchedWrite[SendWire]:
    """The Idempotency-Key is the wire's transaction id. `takes`: how long until it is settled."""

    async def handle(
        connection: Connection, wanted: Sequence[tuple[str, SendWire]]
    ) -> Sequence[object]:
        orders = [
            Order(key, body.account_id, body.external_account_id, body.amount, body.purpose)
            for key, body in wanted
        ]
        refusals = await send(connection, orders, takes)
        return [
            refusal or _accepted(order) for order, refusal in zip(orders, refusals, strict=True)
        ]

    return BatchedWrite("send_wire", "/wires", handle, SendWire, TRANSACTION_ID)


def _accepted(order: Order) -> dict[str, object]:
    return {
        "transaction_id": order.transaction_id,
        "state": "submitted",
        "amount": money(order.amount),
        "account_id": order.account_id,
        "external_account_id": order.external_account_id,
    }


async def get_wire(connection: Connection, transaction_id: str, _: NoQuery) -> object:
    return records.shape(await records.find(connection, transaction_id))
