"""Answers balance queries out of the queue: whose account, what the provider says, validated."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal

import aiohttp
import asyncpg
import uvloop
from faststream import AckPolicy, FastStream
from faststream.rabbit import RabbitBroker
from pydantic import BaseModel

from tests.benchmarks.peers.messages import QUERIES, Balance, BalanceQuery, BalanceReply, Money

PROVIDER_URL = os.environ["PEER_PROVIDER_URL"]
PROVIDER_TOKEN = os.environ["PEER_PROVIDER_TOKEN"]
DATABASE_URL = os.environ["PEER_DATABASE_URL"]
CONNECTIONS = 128
PROVIDER_SECONDS = 5

broker = RabbitBroker(os.environ["PEER_AMQP_URL"], logger=None)


class ProviderBalance(BaseModel):
    account_id: str
    account_number: str
    available: Decimal
    held: Decimal
    total: Decimal
    currency: str
    as_of: datetime

    def to_balance(self) -> Balance:
        def money(amount: Decimal) -> Money:
            return Money(amount=amount, currency=self.currency)

        return Balance(
            account_id=self.account_id,
            account_number=self.account_number,
            available_balance=money(self.available),
            held_balance=money(self.held),
            total_balance=money(self.total),
            system_timestamp=self.as_of,
        )


class Provider:
    """Opened in the running loop."""

    session: aiohttp.ClientSession
    owners: dict[str, str]


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    connection = await asyncpg.connect(DATABASE_URL)
    rows = await connection.fetch("SELECT account_id, tenant FROM accounts")
    Provider.owners = {row["account_id"]: row["tenant"] for row in rows}
    await connection.close()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        headers={"Authorization": f"Bearer {PROVIDER_TOKEN}"},
        timeout=aiohttp.ClientTimeout(total=PROVIDER_SECONDS),
    ) as Provider.session:
        yield


app = FastStream(broker, lifespan=lifespan)


@broker.subscriber(QUERIES, ack_policy=AckPolicy.ACK_FIRST)
async def answer(query: BalanceQuery) -> BalanceReply:
    if Provider.owners.get(query.account_id) != query.tenant:
        return BalanceReply(balance=None)
    url = f"{PROVIDER_URL}/accounts/{query.account_id}/balance"
    async with Provider.session.get(url) as response:
        response.raise_for_status()
        answered = ProviderBalance.model_validate_json(await response.read())
    return BalanceReply(balance=answered.to_balance())


if __name__ == "__main__":
    uvloop.run(app.run())
