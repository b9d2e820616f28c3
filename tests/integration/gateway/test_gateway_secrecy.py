"""What is sensitive is in clear for the caller, and nowhere on the way."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage

from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import ExternalAccount
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import (
    OutcomePending,
)
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.messaging.topology import COMMANDS, QUERIES, REPLIES
from libs.persistence.engine import open_database
from tests.integration.gateway.desk import (
    Desk,
    answering,
    carrying_out,
    until,
)
from tests.support.api import signed_headers
from tests.support.queues import declare_service

pytestmark = pytest.mark.usefixtures("nothing_left")

TARGET = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
BODY = {"first_name": "Ada"}


async def test_no_sensitive_value_is_in_a_queue_or_a_table_in_clear(desk: Desk) -> None:
    """The command to onboarding as the broker carries it, and the inbox row that keeps it."""
    canaries = {"tin": "881238765", "date_of_birth": "1977-07-17"}
    seen: list[dict[str, Any]] = []

    async def update(_drive: Drive, command: UpdatePerson) -> Result:
        seen.append(json.loads(command.model_dump_json(exclude_unset=True)))
        raise OutcomePending  # so that the row keeps its body

    api = await desk.new_api()
    database = open_database(desk.environment.database_urls["onboarding"], "tests")
    async with spying(desk, COMMANDS, onboarding.UPDATE_PERSON.name) as messages:
        async with carrying_out(
            desk.environment, {onboarding.UPDATE_PERSON.name: update}, database=database
        ):
            pending = asyncio.create_task(api.patch(TARGET, BODY | canaries))
            await until(lambda: truth(seen and messages))
        async with database.transaction() as connection:
            rows = await connection.exec_driver_sql(
                "SELECT inbox::text, convert_from(body, 'UTF8') FROM inbox"
                " WHERE finished_at IS NULL"
            )
            kept = str(rows.all())
        pending.cancel()
        await asyncio.wait({pending})
    await database.close()

    assert seen[0] == {"person_id": TARGET.rpartition("/")[2]} | BODY | canaries
    assert b"first_name" in messages[0]
    assert "first_name" in kept
    for canary in canaries.values():
        assert canary.encode() not in messages[0]
        assert canary not in kept


async def test_a_sensitive_reply_is_sealed_on_its_way_and_clear_to_the_caller(desk: Desk) -> None:
    number = "70099887766"
    replies: list[bytes] = []

    async def external(_p: Principal, _command: Any, _deadline: float) -> Result:
        return Result(
            ExternalAccount(
                external_account_id="ext_1",
                external_account_number=number,
                external_account_title="Anvil Works",
                external_institution_aba="021000021",
                external_institution_name="First Bank",
            )
        )

    api = await desk.new_api()
    tap = await Tap.open(desk)
    async with (
        answering(
            desk.environment, "ledger_read", {ledger_read.GET_EXTERNAL_ACCOUNT.name: external}
        ),
        tap.between(ledger_read.GET_EXTERNAL_ACCOUNT.name, replies),
    ):
        answer = await api.get("/partner/reseller/accounts/external/acct_1")

    assert answer.data["external_account_number"] == number
    assert replies
    assert b"external_account_number" in replies[0]
    assert number.encode() not in replies[0]


async def test_the_gateway_logs_nothing_sensitive_even_when_it_logs_all(desk: Desk) -> None:
    canary = "canary-log-881234321"
    api = await desk.new_api()

    await api.patch(TARGET, {"tin": canary, "unknown": canary})
    await api.call("PATCH", TARGET, b'{"tin": "' + canary.encode() + b'"')
    await desk.send(
        signed_headers(api.key, "GET", "/x") | {"X-API-SIGNATURE": canary}, f"/x?tin={canary}"
    )

    assert desk.stack.log("gateway")
    assert canary not in desk.stack.log("gateway")
    assert api.key.secret not in desk.stack.log("gateway")


class Tap:
    """Stands between the gateway and the service that is asked, to read the replies."""

    def __init__(self, desk: Desk, connection: aio_pika.abc.AbstractConnection) -> None:
        self._desk = desk
        self._connection = connection

    @classmethod
    async def open(cls, desk: Desk) -> Tap:
        return cls(desk, await aio_pika.connect(desk.environment.amqp_url))

    @asynccontextmanager
    async def between(self, operation: str, replies: list[bytes]) -> AsyncIterator[None]:
        async with self._connection:
            channel = await self._connection.channel()
            service = operation.partition(".")[0]
            mine = await channel.declare_queue(exclusive=True)
            queries = await channel.get_queue(f"{service}.queries")
            await queries.unbind(QUERIES, service)
            await mine.bind(QUERIES, service)
            back = await channel.declare_queue(f"gateway.replies.{uuid.uuid4()}", exclusive=True)
            await back.bind(REPLIES, back.name)
            to_asker = await channel.get_exchange(REPLIES)
            asked: list[str] = []

            async def forward(message: AbstractIncomingMessage) -> None:
                asked.append(message.reply_to or "")
                await channel.default_exchange.publish(
                    aio_pika.Message(message.body, reply_to=back.name, user_id="gateway"),
                    queries.name,
                )

            async def give_back(message: AbstractIncomingMessage) -> None:
                replies.append(message.body)
                await to_asker.publish(aio_pika.Message(message.body, user_id=service), asked[-1])

            await mine.consume(forward, no_ack=True)
            await back.consume(give_back, no_ack=True)
            try:
                yield
            finally:
                await mine.unbind(QUERIES, service)
                await queries.bind(QUERIES, service)


@asynccontextmanager
async def spying(desk: Desk, exchange: str, routing_key: str) -> AsyncIterator[list[bytes]]:
    """Copies of what is published with this routing key, beside its usual way."""
    messages: list[bytes] = []
    connection = await aio_pika.connect(desk.environment.amqp_url)
    async with connection:
        channel = await connection.channel()
        await declare_service(channel, routing_key.partition(".")[0])
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, routing_key)

        async def keep(message: AbstractIncomingMessage) -> None:
            messages.append(message.body)

        await queue.consume(keep, no_ack=True)
        yield messages


async def truth(value: object) -> bool:
    return bool(value)
