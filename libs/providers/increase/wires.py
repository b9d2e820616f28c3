"""Wires of Increase: what is read of them, and the calls that read them.

They are not read as the SDK's model, which refuses a wire for a value that is not used here: Increase has shown
reversals, in tests, whose `input_cycle_date` is -4712-01-01.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from increase import AsyncIncrease, Omit

from libs.providers.increase.answers import read_answer


class Creditor(msgspec.Struct):
    name: str | None = None


class Cancellation(msgspec.Struct):
    canceled_at: datetime


class Reversal(msgspec.Struct):
    """`amount` in cents: what came back, which may be a part of the wire's."""

    created_at: datetime
    description: str
    amount: int | None = None
    return_reason_code_description: str | None = None


class Wire(msgspec.Struct):
    """`amount` in cents. `status`: of `wire_states.STATES`, or one of a later release of Increase."""

    id: str
    account_id: str
    amount: int
    created_at: datetime
    status: str
    cancellation: Cancellation | None = None
    creditor: Creditor | None = None
    external_account_id: str | None = None
    idempotency_key: str | None = None
    reversal: Reversal | None = None


class Wires(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[Wire]
    next_cursor: str | None = None


async def list_wires(sdk: AsyncIncrease, cursor: str | Omit, limit: int) -> Wires:
    answer = await sdk.wire_transfers.with_raw_response.list(cursor=cursor, limit=limit)
    return read_answer(answer, Wires)


async def wires_having_key(sdk: AsyncIncrease, key: str) -> Wires:
    return read_answer(await sdk.wire_transfers.with_raw_response.list(idempotency_key=key), Wires)


async def retrieve_wire(sdk: AsyncIncrease, wire_id: str) -> Wire:
    return read_answer(await sdk.wire_transfers.with_raw_response.retrieve(wire_id), Wire)
