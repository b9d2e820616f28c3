"""Takes signed requests over HTTP and asks the worker through the queue."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import asyncpg
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from faststream import AckPolicy, Context
from faststream.rabbit import RabbitBroker, RabbitQueue

from tests.benchmarks.peers.messages import QUERIES, BalanceQuery, BalanceReply, Envelope

DATABASE_URL = os.environ["PEER_DATABASE_URL"]
CONNECTIONS = 20
WINDOW_SECONDS = 300
ANSWER_SECONDS = 20

broker = RabbitBroker(os.environ["PEER_AMQP_URL"], logger=None)
replies = RabbitQueue(f"balances.replies.{uuid.uuid4()}", exclusive=True, auto_delete=True)
waiting: dict[str, asyncio.Future[BalanceReply]] = {}


@dataclass(frozen=True)
class Credential:
    secret: bytes
    tenant: str


class Database:
    """Opened in the running loop."""

    pool: asyncpg.Pool
    credentials: dict[str, Credential]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(DATABASE_URL, max_size=CONNECTIONS) as Database.pool:
        rows = await Database.pool.fetch("SELECT * FROM credentials")
        Database.credentials = {
            row["subscription_key"]: Credential(row["secret"].encode(), row["tenant"])
            for row in rows
        }
        async with broker:
            await broker.start()
            yield


app = FastAPI(lifespan=lifespan)


@broker.subscriber(replies, ack_policy=AckPolicy.ACK_FIRST)
async def on_reply(
    reply: BalanceReply, correlation_id: Annotated[str, Context("message.correlation_id")]
) -> None:
    future = waiting.pop(correlation_id, None)
    if future is not None and not future.done():
        future.set_result(reply)


async def authenticated(
    request: Request,
    signature: Annotated[str, Header(alias="X-API-SIGNATURE")],
    timestamp: Annotated[int, Header(alias="X-API-TIMESTAMP")],
    nonce: Annotated[str, Header(alias="X-API-NONCE", min_length=16, max_length=128)],
    subscription_key: Annotated[str, Header(alias="X-API-SUBSCRIPTION-KEY")],
) -> Credential:
    """Who signed the request; its nonce is used up."""
    credential = Database.credentials.get(subscription_key)
    if credential is None:
        raise HTTPException(401, "unknown_subscription_key")
    if abs(time.time() - timestamp) > WINDOW_SECONDS:
        raise HTTPException(401, "timestamp_out_of_window")
    target = request.scope["raw_path"].decode()
    if request.url.query:
        target = f"{target}?{request.url.query}"
    digest = sha256(await request.body()).hexdigest()
    canonical = (
        f"v1\n{timestamp}\n{nonce}\n{subscription_key}\n{request.method}\n{target}\n{digest}"
    )
    expected = hmac.digest(credential.secret, canonical.encode(), "sha256").hex()
    if not hmac.compare_digest(expected, signature):
        raise HTTPException(401, "invalid_signature")
    fresh = await Database.pool.fetchval(
        "INSERT INTO nonces (subscription_key, timestamp, nonce) VALUES ($1, $2, $3)"
        " ON CONFLICT DO NOTHING RETURNING true",
        subscription_key,
        timestamp,
        nonce,
    )
    if not fresh:
        raise HTTPException(401, "nonce_reused")
    return credential


@app.get("/partner/reseller/accounts/balance/{account_id}")
async def get_balance(
    account_id: str, caller: Annotated[Credential, Depends(authenticated)]
) -> Envelope:
    reply = await ask(BalanceQuery(tenant=caller.tenant, account_id=account_id))
    if reply.balance is None:
        raise HTTPException(404, "not_found")
    return Envelope(message="Account balance retrieved", data=reply.balance)


async def ask(query: BalanceQuery) -> BalanceReply:
    correlation_id = str(uuid.uuid4())
    future = waiting[correlation_id] = asyncio.get_running_loop().create_future()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await broker.publish(
                query, QUERIES, reply_to=replies.name, correlation_id=correlation_id
            )
            return await future
    except TimeoutError:
        raise HTTPException(504, "provider_timeout") from None
    finally:
        waiting.pop(correlation_id, None)
