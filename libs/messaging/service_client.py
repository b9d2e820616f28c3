"""Sending queries and commands to services and awaiting their replies.

| | commands | queries |
|---|---|---|
| travel | one by one, durable, confirmed by the broker | in batches, without confirms |
| are bounded by | `WAITING_REPLIES`, and for each tenant | `WAITING_REPLIES`, and `OUTSTANDING_QUERIES` by service |
| on a lost session | may go on: `OutcomePending` | `Unavailable` at once; an operator's write: `OutcomePending` |

The first query to a service on a session is confirmed all the same: so a service that has no queue yet is `Unavailable`
at once, too.

An answer counts only when it comes from the service that was asked: `user_id`, which the broker has checked, says so.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

import msgspec
import structlog
from aio_pika.abc import AbstractQueue
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError
from uuid_utils import uuid7

from libs import tracing
from libs.batching import Batcher, TooManyWaiting
from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    OutcomePending,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.exact_json import decode
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.request_context import request_context
from libs.contracts.sensitive import Sealer, open_payload, seal_payload
from libs.messaging.broker_errors import BROKER_ERRORS, session_loss_as_error
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
from libs.messaging.metrics import MESSAGES_REFUSED
from libs.messaging.publishing import PERSISTENT, TRANSIENT, Properties, Publisher
from libs.messaging.refusing import WRONG_SENDER
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.session import Session
from libs.messaging.topology import COMMANDS, QUERIES, REPLIES, replies_queue

QUERY_BATCH = 64
LATE = "The service did not answer in time."
"""The detail of a read that has no reply at its deadline."""
WAITING_REPLIES = 20_000
"""The most commands and queries of one process that wait for a reply: each holds memory until its deadline."""
OUTSTANDING_QUERIES = 1024
"""The most unanswered queries of one process to one service: four times as many as a service works on at once. Those of
nine processes fit into the service's queue (`QUERY_QUEUE_LENGTH`). It drops further ones in silence, as they are sent
without confirms.
"""
REPLIES_END_SECONDS = 0.5
"""When a stop brings deadlines forward, no reply is taken from this time before the last one on: what the queue has
taken is here by then. Services leave a reply on which something depends as long at every deadline
(`libs.handling.forgetting`).
"""
PART_OF_A_TENANT = 3 / 4
"""The part of `OUTSTANDING_QUERIES` that one tenant may have: others can send queries while those of one are slow."""


class _Expected(NamedTuple):
    service: str
    """The service that is asked."""
    reply: asyncio.Future[Reply]


@dataclass(frozen=True, slots=True)
class _Attached:
    """What a client has on one session."""

    session: Session
    confirmed: Publisher
    unconfirmed: Publisher
    replies: AbstractQueue
    """Exclusive to the session: replies to requests of a lost session do not arrive."""
    routed: set[str] = field(default_factory=set)
    """Services that are known to have a queue of queries."""


class _NoSession(ConnectionError):
    """Nothing was sent: there is no session with the broker, or it reads nothing from it."""


NOT_SENT = (_NoSession, DeliveryError, ChannelInvalidStateError, TooManyWaiting)
"""After these the service does not have the query: it was refused, returned, or never written."""


class ServiceClient:
    """A part of the broker through which a process sends requests to services.

    Args:
        deadlines: of commands besides their own, where a stop of the process brings them forward.
        commands_of_a_tenant: the most commands of one tenant that wait for a reply.
    """

    def __init__(
        self,
        sealer: Sealer,
        deadlines: RequestDeadlines | None = None,
        *,
        commands_of_a_tenant: int = WAITING_REPLIES,
    ) -> None:
        self._sealer = sealer
        self._deadlines = deadlines or RequestDeadlines()
        self._waiting: dict[str, _Expected] = {}
        """By the message id of the envelope."""
        self._outstanding: Counter[str] = Counter()
        self._of_tenants: Counter[tuple[str, str]] = Counter()
        """By service and tenant."""
        self._commands_of_a_tenant = commands_of_a_tenant
        self._commands_of_tenants: Counter[str] = Counter()
        self._queries: set[asyncio.Future[Reply]] = set()
        self._attached: _Attached | None = None
        self._replies_ended = False
        self._batchers: dict[str, Batcher[Envelope, None]] = {}
        MESSAGES_REFUSED.labels(REPLIES, WRONG_SENDER)
        self._log = structlog.get_logger("service_client")

    async def attach(self, session: Session) -> None:
        replies = await session.channel()
        queue = await replies.declare_queue(
            replies_queue(session.user, uuid4().hex), exclusive=True, auto_delete=True
        )
        await queue.bind(REPLIES, routing_key=queue.name)
        await consume(replies, queue.name, self._on_replies, no_ack=True)
        confirmed = await session.publisher(confirms=True)
        unconfirmed = await session.publisher(confirms=False)
        if not self._replies_ended:
            self._attached = _Attached(session, confirmed, unconfirmed, queue)

    def detach(self) -> None:
        self._attached = None
        for reply in self._queries:
            if not reply.done():
                reply.set_exception(ConnectionError("the session ended"))
                reply.exception()  # a query that was still being sent awaits it no more

    async def end_replies_at_stop(self) -> NoReturn:
        """When a stop brings deadlines forward, take no more replies from shortly before the last one on.

        A service that tells a caller that nothing was started forgets the command once the queue has taken its reply.
        A reply without a queue is returned to it, and the command is carried out, as its caller is told. What is sent
        from then on is `Unavailable`: nothing was sent.
        """
        await self._deadlines.until_last(REPLIES_END_SECONDS)
        self._replies_ended = True
        attached, self._attached = self._attached, None
        if attached is not None:
            try:
                with session_loss_as_error():
                    await attached.replies.unbind(REPLIES, routing_key=attached.replies.name)
            except BROKER_ERRORS as error:
                self._log.warning("replies_not_ended", error=repr(error))
        await asyncio.Future[NoReturn]()

    async def query(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        deadline: float,
    ) -> Any:
        """Ask another service from within one. Returns the decoded payload, its sensitive fields opened.

        The query has the request id that this task works for, or its own id where there is none.

        Args:
            deadline: Unix seconds.

        Raises:
            Unavailable, ProviderTimeout, OutcomePending: as `send_query` does.
            BanksideError: as replied.
        """
        query_id = str(uuid7())
        current = request_context.get()
        envelope = self.envelope(
            operation,
            principal,
            command,
            command_id=query_id,
            request_id=current.request_id if current else query_id,
            deadline=deadline,
        )
        reply = await self.send_query(envelope, is_read=operation.is_read)
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
        body_hashes: Sequence[str] = (),
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
            body_hash=body_hashes[0] if body_hashes else None,
            earlier_body_hashes=tuple(body_hashes[1:]),
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

    async def send_query(self, envelope: Envelope, *, is_read: bool = True) -> Reply:
        """Send a query and await its reply until its deadline.

        Raises:
            Unavailable: it was not sent; or as many queries as may be are unanswered, of its service
                (`OUTSTANDING_QUERIES`) or of its tenant (`PART_OF_A_TENANT`). For a read also: its session was lost.
            ProviderTimeout: there was no reply to a read in time.
            OutcomePending: what changes something may have reached the service, and there was no reply.
        """
        service = _service_of(envelope)
        of_tenant = (service, envelope.principal.tenant)
        if (
            self._outstanding[service] >= OUTSTANDING_QUERIES
            or self._of_tenants[of_tenant] >= OUTSTANDING_QUERIES * PART_OF_A_TENANT
        ):
            raise Unavailable
        future = self._expect(envelope)
        self._outstanding[service] += 1
        self._of_tenants[of_tenant] += 1
        self._queries.add(future)
        try:
            async with asyncio.timeout(_left(envelope)):
                try:
                    with _sending(QUERIES, service, envelope):
                        await self._batcher(service).submit(_in_trace(envelope))
                    return await future
                except NOT_SENT as error:
                    raise Unavailable from error
                except BROKER_ERRORS as error:
                    raise (Unavailable() if is_read else _unanswered()) from error
        except TimeoutError:
            raise (ProviderTimeout(LATE) if is_read else _unanswered()) from None
        finally:
            self._queries.discard(future)
            self._outstanding[service] -= 1
            self._of_tenants[of_tenant] -= 1
            if not self._of_tenants[of_tenant]:
                del self._of_tenants[of_tenant]
            self._waiting.pop(envelope.message_id, None)

    async def send_command(self, envelope: Envelope) -> Reply:
        """Publish a command durably and await its reply until its deadline, which a stop of the process brings forward.

        Raises:
            Unavailable: the broker refused it, returned it, never got it, or blocks publishers; or as many commands of
                its tenant as may be are unanswered.
            OutcomePending: it may have been accepted, and there was no reply in time.
        """
        attached = self._attached
        tenant = envelope.principal.tenant
        if (
            attached is None
            or attached.session.is_blocked
            or self._commands_of_tenants[tenant] >= self._commands_of_a_tenant
        ):
            raise Unavailable
        properties = Properties(
            content_type="application/json",
            delivery_mode=PERSISTENT,
            reply_to=attached.replies.name,
            message_id=envelope.message_id,
        )
        future = self._expect(envelope)
        self._commands_of_tenants[tenant] += 1
        try:
            async with self._deadlines.limit(_left(envelope)):
                with _sending(COMMANDS, envelope.operation, envelope):
                    body = encode(_in_trace(envelope))
                    await attached.confirmed.publish(COMMANDS, envelope.operation, body, properties)
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
            self._commands_of_tenants[tenant] -= 1
            if not self._commands_of_tenants[tenant]:
                del self._commands_of_tenants[tenant]

    def _expect(self, envelope: Envelope) -> asyncio.Future[Reply]:
        if len(self._waiting) >= WAITING_REPLIES:
            raise Unavailable
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[envelope.message_id] = _Expected(_service_of(envelope), future)
        return future

    def _batcher(self, service: str) -> Batcher[Envelope, None]:
        batcher = self._batchers.get(service)
        if batcher is None:

            async def run(batch: list[Envelope]) -> list[None]:
                await self._publish_queries(service, batch)
                return [None] * len(batch)

            batcher = Batcher(run, name=f"query:{service}", limit=QUERY_BATCH)
            self._batchers[service] = batcher
        return batcher

    async def _publish_queries(self, service: str, batch: list[Envelope]) -> None:
        attached = self._attached
        if attached is None:
            raise _NoSession("no session with the broker")
        if attached.session.is_blocked:
            raise _NoSession("the broker blocks publishers")
        properties = Properties(
            content_type="application/json",
            delivery_mode=TRANSIENT,
            reply_to=attached.replies.name,
            message_id=batch[0].id,
        )
        body = encode(batch)
        if service in attached.routed:
            await attached.unconfirmed.publish(
                QUERIES, service, body, properties, wait_for_socket=False
            )
            return
        async with asyncio.timeout(max(_left(envelope) for envelope in batch)):
            await attached.confirmed.publish(QUERIES, service, body, properties)
        attached.routed.add(service)

    async def _on_replies(self, message: Delivery) -> None:
        try:
            replies = decode_replies(message.body)
        except NotAnEnvelope as error:
            self._log.error("not_a_reply", cause=str(error), bytes=len(message.body))
            return
        sender = message.properties.user_id
        for reply in replies:
            expected = self._waiting.get(reply.to)
            if expected is None or expected.reply.done():
                continue
            if expected.service != sender:
                MESSAGES_REFUSED.labels(REPLIES, WRONG_SENDER).inc()
                self._log.error("reply_of_another", asked=expected.service, sender=sender)
                continue
            expected.reply.set_result(reply)


def _sending(exchange: str, routing_key: str, envelope: Envelope) -> tracing.Spanning:
    if (parent := tracing.parent()) is None:
        return tracing.NOTHING
    return tracing.span(
        f"send {envelope.operation}",
        "producer",
        parent,
        tracing.messaging("send", f"{exchange}:{routing_key}", routing_key, envelope.message_id),
    )


def _in_trace(envelope: Envelope) -> Envelope:
    trace = tracing.current()
    return msgspec.structs.replace(envelope, trace=trace) if trace is not None else envelope


def _unanswered() -> OutcomePending:
    return OutcomePending(LOOK_BEFORE_REPEATING)


def _service_of(envelope: Envelope) -> str:
    return envelope.operation.partition(".")[0]


def _left(envelope: Envelope) -> float:
    return max(0.0, envelope.deadline - time.time())
