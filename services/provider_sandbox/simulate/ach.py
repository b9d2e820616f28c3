"""The clearing house and the receiving bank act on ACH requests."""

from __future__ import annotations

from services.provider_sandbox import ach
from services.provider_sandbox.amounts import Amount
from services.provider_sandbox.database import Connection
from services.provider_sandbox.nacha import ReturnCode
from services.provider_sandbox.operations import Body, Nothing


class Request(Body):
    account_id: str
    amount: Amount


class SendBack(Body):
    return_code: ReturnCode


async def create(connection: Connection, _: str, body: Request) -> object:
    return ach.shape(await ach.create(connection, body.account_id, body.amount))


async def submit(connection: Connection, reference_id: str, _: Nothing) -> object:
    return ach.shape(await ach.submit(connection, reference_id))


async def settle(connection: Connection, reference_id: str, _: Nothing) -> object:
    return ach.shape(await ach.settle(connection, reference_id))


async def send_back(connection: Connection, reference_id: str, body: SendBack) -> object:
    return ach.shape(await ach.send_back(connection, reference_id, body.return_code))
