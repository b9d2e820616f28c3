"""A write of an operator is not begun again where the broker delivers its message once more."""

from __future__ import annotations

import time
import uuid

from aio_pika import Message
from aio_pika.abc import AbstractConnection

from libs.contracts.errors import BanksideError, OutcomePending
from libs.contracts.operating.wires import OPERATIONS
from libs.contracts.payments_operations import GET_WIRE_POLICY
from libs.contracts.principal import Family, Principal
from libs.messaging.broker import Broker
from libs.messaging.envelope import Envelope, EnvelopeHead, encode, raw
from libs.messaging.query_consumer import QueryConsumer
from libs.messaging.topology import queries_queue
from tests.security.messages import GATEWAY, replies_of
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

APPROVAL = next(row for row in OPERATIONS if row.name == "payments.operator_approve_wire")
READ = GET_WIRE_POLICY


def asked(operation: str) -> Envelope:
    return Envelope(
        id=str(uuid.uuid4()),
        message_id=str(uuid.uuid4()),
        request_id="request",
        operation=operation,
        principal=Principal("t_anvil", "Anvil", Family.PARTNER, "sub_1"),
        deadline=time.time() + 60,
        body=raw({}),
    )


async def test_of_what_may_have_been_done_the_outcome_is_told_as_unknown(
    site: Environment, administrator: AbstractConnection
) -> None:
    answered: list[str] = []
    refused: dict[str, BanksideError] = {}

    async def answer(envelope: Envelope, _: str | None) -> None:
        answered.append(envelope.operation)

    async def refuse(head: EnvelopeHead, _: str | None, error: BanksideError) -> None:
        refused[head.id] = error

    async def all_are_told() -> bool:
        return len(answered) + len(refused) == 3

    write, read, in_time = asked(APPROVAL.name), asked(READ.name), asked(APPROVAL.name)
    async with administrator.channel() as channel:
        queue = await channel.get_queue(queries_queue("payments"), ensure=False)
        for batch in ([write, read], [in_time]):
            body = encode(batch)
            message = Message(body, user_id=GATEWAY, reply_to=replies_of(GATEWAY))
            await channel.default_exchange.publish(message, queue.name)
        taken = await queue.get(timeout=10 * pace())
        assert taken is not None, "and it is not settled: the channel's end returns it"

    broker = Broker(site.amqp_urls["payments"], "payments")
    broker.add(QueryConsumer("payments", answer, refuse))
    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        await eventually("all are told", all_are_told)

    assert sorted(answered) == sorted([READ.name, APPROVAL.name]), "the one that came first once"
    assert {one: type(error) for one, error in refused.items()} == {write.id: OutcomePending}
