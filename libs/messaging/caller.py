"""Asking a service and awaiting its reply: queries in batches, commands one by one, replies on a queue of our own."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import structlog
from aio_pika import DeliveryMode
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError
from uuid_utils import uuid7

from libs.contracts.errors import OutcomePending, ProviderTimeout, Unavailable
from libs.contracts.exact_json import decode
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.sensitive import Sealer, open_payload, seal_payload
from libs.messaging.batching import Batcher, TooManyWaiting
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.delivery import Delivery, consume
from libs.messaging.envelope import (
    Envelope,
    NotAnEnvelope,
    Reply,
    command_context,
    decode_replies,
    encode,
    raw,
    reply_context,
)
from libs.messaging.publishing import Properties, publish
from libs.messaging.session import Session
from libs.messaging.topology import COMMANDS, QUERIES, declare_exchanges

QUERY_BATCH = 64
WAITING_REPLIES = 20_000


class Caller:
    """A part of the broker through which a process asks services.

    The reply queue is exclusive to the session: replies to what was asked on a lost session do not come, and their
    callers are told at their deadline, since the work may go on.
    """

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._channel: AbstractChannel | None = None
        self._reply_to: str | None = None
        self._batchers: dict[str, Batcher[Envelope, None]] = {}
        self._log = structlog.get_logger("caller")

    async def attach(self, session: Session) -> None:
        replies = await session.channel(confirms=False)
        queue = await replies.declare_queue(exclusive=True, auto_delete=True)
        await consume(replies, queue.name, self._on_replies, no_ack=True)
        publishing = await session.channel(confirms=True)
        await declare_exchanges(publishing)
        self._channel = publishing
        self._reply_to = queue.name

    def detach(self) -> None:
        self._channel = None
        self._reply_to = None

    async def query(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        deadline: float,
        request_id: str | None = None,
    ) -> Any:
        """Ask another service from within one: the opened payload, decoded.

        Raises:
            Unavailable: it was not asked.
            ProviderTimeout: no reply before the deadline (Unix seconds).
            BanksideError: as replied.
        """
        query_id = str(uuid7())
        envelope = self.envelope(
            operation,
            principal,
            command,
            command_id=query_id,
            request_id=request_id or query_id,
            deadline=deadline,
        )
        reply = await self.ask(envelope)
        if reply.error is not None:
            raise reply.error.to_error()
        return self.open_result(operation, reply)

    def envelope(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        *,
        command_id: str,
        request_id: str,
        deadline: float,
        message_id: str | None = None,
        body_hash: str | None = None,
    ) -> Envelope:
        """The envelope of a command, its sensitive fields sealed."""
        body = seal_payload(
            operation.command_shape,
            command.model_dump(exclude_unset=True),
            self._sealer,
            command_context(operation, command_id),
        )
        return Envelope(
            id=command_id,
            message_id=message_id or str(uuid7()),
            request_id=request_id,
            operation=operation.name,
            principal=principal,
            deadline=deadline,
            body=raw(body),
            body_hash=body_hash,
        )

    def open_result(self, operation: Operation, reply: Reply) -> Any:
        """The payload of a successful reply, decoded, its sensitive fields opened."""
        payload = decode(bytes(reply.result)) if reply.result else {"data": None}
        if operation.reply_shape:
            context = reply_context(operation, reply.id)
            payload["data"] = open_payload(
                operation.reply_shape, payload["data"], self._sealer, context
            )
        return payload

    async def ask(self, envelope: Envelope) -> Reply:
        """Send a query and await its reply until its deadline.

        Raises:
            Unavailable: it was not sent.
            ProviderTimeout: there was no reply in time.
        """
        future = self._expect(envelope)
        try:
            async with asyncio.timeout(_left(envelope)):
                try:
                    await self._batcher(envelope.operation).submit(envelope)
                except (*BROKER_ERRORS, TooManyWaiting) as error:
                    raise Unavailable from error
                return await future
        except TimeoutError:
            raise ProviderTimeout from None
        finally:
            self._waiting.pop(envelope.message_id, None)

    async def command(self, envelope: Envelope) -> Reply:
        """Publish a command durably and await its reply until its deadline.

        Raises:
            Unavailable: the broker refused it, returned it or never got it.
            OutcomePending: it may have been accepted, and there was no reply in time.
        """
        channel, reply_to = self._channel, self._reply_to
        if channel is None or reply_to is None:
            raise Unavailable
        body = encode(envelope)
        properties = Properties(
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            reply_to=reply_to,
            message_id=envelope.message_id,
        )
        future = self._expect(envelope)
        try:
            async with asyncio.timeout(_left(envelope)):
                await publish(
                    channel, COMMANDS, envelope.operation, body, properties, mandatory=True
                )
                # A reply that comes together with the deadline must not be lost to the cancellation.
                return await asyncio.shield(future)
        except (DeliveryError, ChannelInvalidStateError) as error:
            raise Unavailable from error  # refused, returned, or never written
        except TimeoutError:
            if future.done():
                return future.result()
            raise OutcomePending from None
        except Exception as error:
            if future.done():
                return future.result()
            # From the first byte on, no error says that the command was not taken.
            self._log.warning("command_unconfirmed", command=envelope.id, error=repr(error))
            raise OutcomePending from error
        finally:
            self._waiting.pop(envelope.message_id, None)

    def _expect(self, envelope: Envelope) -> asyncio.Future[Reply]:
        if len(self._waiting) >= WAITING_REPLIES:
            raise Unavailable
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[envelope.message_id] = future
        return future

    def _batcher(self, operation: str) -> Batcher[Envelope, None]:
        batcher = self._batchers.get(operation)
        if batcher is None:

            async def run(batch: list[Envelope]) -> list[None]:
                await self._publish_queries(operation, batch)
                return [None] * len(batch)

            batcher = Batcher(run, name=f"query:{operation}", limit=QUERY_BATCH)
            self._batchers[operation] = batcher
        return batcher

    async def _publish_queries(self, operation: str, batch: list[Envelope]) -> None:
        channel, reply_to = self._channel, self._reply_to
        if channel is None or reply_to is None:
            raise ConnectionError("no session with the broker")
        properties = Properties(
            content_type="application/json",
            delivery_mode=DeliveryMode.NOT_PERSISTENT,
            reply_to=reply_to,
            message_id=batch[0].id,
        )
        async with asyncio.timeout(max(_left(envelope) for envelope in batch)):
            await publish(channel, QUERIES, operation, encode(batch), properties, mandatory=True)

    async def _on_replies(self, message: Delivery) -> None:
        try:
            replies = decode_replies(message.body)
        except NotAnEnvelope as error:
            self._log.error("not_a_reply", cause=str(error), bytes=len(message.body))
            return
        for reply in replies:
            future = self._waiting.get(reply.to)
            if future is not None and not future.done():
                future.set_result(reply)


def _left(envelope: Envelope) -> float:
    return max(0.0, envelope.deadline - time.time())
