"""A broker on which letters are dead, and what operators do with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import asyncpg
import msgspec
from aio_pika import Message
from uuid_utils import uuid7

from libs.contracts.model import Command
from libs.contracts.operating.dead_letters import ReplayDeadLettersOf
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.handling.operating.letters import AcceptAnew, OwnLetters
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import QueryHandler
from libs.messaging.envelope import Envelope, encode
from libs.messaging.queue_depths import ready_messages
from libs.persistence.engine import Database
from libs.persistence.sealing import LookupKeys
from services.onboarding import replaying as onboarding
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.payments import replaying as payments
from services.webhook_dispatcher import replaying as webhook_dispatcher
from services.webhook_dispatcher.app import in_order_of_subscription
from tests.support.answered_operators import AnsweredOperators, HandlersOf
from tests.support.command_line import Finished
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of, storage_of
from tests.support.pace import pace
from tests.support.queues import next_in
from tests.support.waiting import eventually

QUEUE = "onboarding.commands"
COMMAND_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
FORGED_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d02"


@dataclass(frozen=True)
class Site:
    """A broker on which a command, a forged one and something that is none have died, and onboarding's database."""

    environment: Environment
    operator: AnsweredOperators

    @property
    def broker(self) -> str:
        """The administrator's URL."""
        return self.environment.amqp_url

    async def dead(self, *arguments: str) -> Finished:
        return await self.operator.run("dead", *arguments)

    async def ask(self, operation: Operation, command: Command) -> Any:
        return (await self.operator.call(operation, command)).data

    async def seen(self, *arguments: str) -> str:
        """What is printed once the letters are back that an earlier look had taken: that takes the broker a moment."""
        printed = ""

        async def are_back() -> bool:
            nonlocal printed
            status, printed, _ = await self.dead(*arguments)
            return status == 0 and f"{QUEUE}.dead: none" not in printed

        await eventually("the letters are back", are_back)
        return printed

    async def letters(self) -> list[dict[str, Any]]:
        status, out, _ = await self.dead("list", "--json", "--queue", QUEUE)
        assert status == 0
        listed: list[dict[str, Any]] = json.loads(out)["queues"][0]["letters"]
        return listed

    async def recorded(self, service: str, statement: str) -> list[Any]:
        connection = await asyncpg.connect(self.environment.database_urls[service])
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()


def a_command(
    command_id: str,
    sender: str,
    operation: str = "onboarding.update_business",
    body_hash: str | None = None,
) -> Message:
    envelope = Envelope(
        id=command_id,
        message_id=str(uuid7()),
        request_id="request",
        operation=operation,
        principal=Principal("tenant", "Tenant", Family.PARTNER, "sub_test"),
        deadline=0.0,
        body=msgspec.Raw(b'{"customer_id":"c-1"}'),
        body_hash=body_hash,
    )
    return Message(encode(envelope), message_id=envelope.message_id, user_id=sender)


async def die(site: Site, queue_name: str, *messages: Message) -> None:
    connection = await aio_pika.connect(site.broker)
    async with connection, connection.channel() as channel:
        for message in messages:
            await channel.default_exchange.publish(message, queue_name)
        queue = await channel.get_queue(queue_name)
        for _ in messages:
            await (await next_in(queue)).reject(requeue=False)
        async with asyncio.timeout(10 * pace()):
            while await ready_messages(channel, f"{queue_name}.dead") < len(messages):
                await asyncio.sleep(0.02)


def handlers(environment: Environment) -> dict[str, HandlersOf]:
    secrets = environment.secrets

    def own(service: str, accept: Mapping[str, AcceptAnew]) -> OwnLetters:
        return OwnLetters(environment.amqp_urls[service], None, accept)

    def of_onboarding(database: Database) -> dict[str, QueryHandler]:
        lookup = LookupKeys(secrets.lookup_keys["onboarding"])
        store = Store(Vault(storage_of(secrets, "onboarding"), lookup))
        accept = onboarding.accept_anew(
            "onboarding", database, store, sealer_of(secrets, "onboarding")
        )
        return operating_handlers("onboarding", database, letters=own("onboarding", accept))

    def of_payments(database: Database) -> dict[str, QueryHandler]:
        accept = payments.accept_anew("payments", database, sealer_of(secrets, "payments"))
        return operating_handlers("payments", database, letters=own("payments", accept))

    def of_dispatcher(database: Database) -> dict[str, QueryHandler]:
        service = "webhook_dispatcher"
        accept = webhook_dispatcher.accept_anew(
            service,
            database,
            sealer_of(secrets, service),
            ordering=in_order_of_subscription,
            retention=timedelta(days=30),
            clock=lambda: datetime.now(UTC),
        )
        return operating_handlers(service, database, letters=own(service, accept))

    return {
        "onboarding": of_onboarding,
        "payments": of_payments,
        "webhook_dispatcher": of_dispatcher,
    }


def message_id_of(letter: Mapping[str, Any]) -> str:
    """The id of a letter has a digest besides."""
    return str(letter["id"]).rpartition("-")[0]


async def of_all_letters(site: Site) -> ReplayDeadLettersOf:
    ids = [letter["id"] for letter in await site.letters()]
    return ReplayDeadLettersOf(letter_ids=ids, service="onboarding", reason="x")
