"""Refused messages: each moves to the dead queue together with the sentence that says why.

The broker moves a message that is rejected as it is, without a word of ours. So a copy with the sentence among its
headers is published to the dead queue, and the message is acked once the broker has confirmed the copy.

- A crash before the ack leaves both: the message is refused again, and the dead queue has it twice.
- A message that cannot be copied, whose copy the broker does not take, or over whose copy a session was lost, is
  rejected: it reaches the dead queue without the sentence.

The copy's sender is the service that refused the message, as the broker enforces. The message's own sender stands in a
header, which counts only in copies that the queue's own service has published.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from cachetools import LRUCache
from structlog.typing import FilteringBoundLogger

from libs.messaging.delivery import Delivery, settle
from libs.messaging.metrics import MESSAGES_REFUSED
from libs.messaging.poison import name_of
from libs.messaging.publishing import PERSISTENT, Properties, Publisher
from libs.messaging.session import Session
from libs.messaging.topology import DEAD, dead_queue

SENDER: Final = "bankside-sender"
REASON: Final = "bankside-reason"
BECAUSE: Final = "bankside-because"
DIED_AT: Final = "bankside-died-at"
OURS: Final = frozenset({SENDER, REASON, BECAUSE, DIED_AT})

WRONG_SENDER = "sender"
"""The reason for refusing a message that its sender may not send by the table."""
CONFIRM_SECONDS = 5.0
LONGEST_BECAUSE = 500
LARGEST_PROPERTIES = 32 * 1024
"""Bytes: they travel in one frame, and a larger one would end the session."""
FAILED = 1000
"""Copies that failed and are remembered: one over which a session was lost is not made again."""


class Refuser:
    """Moves messages of one queue to its dead queue."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._publisher: Publisher | None = None
        self._failed: LRUCache[str, bool] = LRUCache(FAILED)
        self._log = structlog.get_logger("refusals")

    async def attach(self, session: Session) -> None:
        self._publisher = await session.publisher(confirms=True)

    def detach(self) -> None:
        self._publisher = None

    async def refuse(
        self, message: Delivery, reason: str, because: str, log: FilteringBoundLogger
    ) -> None:
        """Move it, and count it. It is delivered again where that does not reach the broker.

        An error ends no consumer: the message is rejected as it is. Left unacked, it would occupy a place of the
        prefetch for ever, or be deleted by an ack of later ones.

        Args:
            reason: of the metric.
            because: a sentence for operators, without values of the message.
            log: the consumer's.
        """
        MESSAGES_REFUSED.labels(self._queue, reason).inc()
        try:
            await settle(self._move(message, reason, because), log)
        except Exception:
            log.exception("not_refused", reason=reason)
            await settle(message.reject(), log)

    async def _move(self, message: Delivery, reason: str, because: str) -> None:
        if message.is_settled:  # it was given back to the queue meanwhile, and comes again
            return
        if await self._publish_copy(message, reason, because):
            await message.ack()
        else:
            await message.reject()

    async def _publish_copy(self, message: Delivery, reason: str, because: str) -> bool:
        """Whether the broker has confirmed it. False: reject the message without one."""
        name, publisher = name_of(message), self._publisher
        if publisher is None or name in self._failed:
            return False
        try:
            properties = _copied(message.properties, reason, because)
            if len(properties.marshal()) > LARGEST_PROPERTIES:
                return False
            async with asyncio.timeout(CONFIRM_SECONDS):
                await publisher.publish(DEAD, dead_queue(self._queue), message.body, properties)
        except asyncio.CancelledError:  # the session was lost
            self._failed[name] = True
            raise
        except Exception as error:
            # A header that can be decoded and not encoded, or a broker that does not take or confirm the copy.
            self._failed[name] = True
            self._log.warning("refused_without_reason", error=type(error).__name__)
            return False
        return True


def _copied(of: Properties, reason: str, because: str) -> Properties:
    """The properties of the copy, without those that would send it elsewhere, end its life, or direct a reply."""
    headers = {
        name: value
        for name, value in (of.headers or {}).items()
        if not name.startswith("x-") and name not in ("CC", "BCC") and name not in OURS
    }
    headers |= {
        REASON: reason,
        BECAUSE: because[:LONGEST_BECAUSE],
        DIED_AT: datetime.now(UTC),
    }
    if of.user_id:
        headers[SENDER] = of.user_id
    return Properties(
        content_type=of.content_type,
        content_encoding=of.content_encoding,
        correlation_id=of.correlation_id,
        message_id=of.message_id,
        message_type=of.message_type,
        app_id=of.app_id,
        timestamp=of.timestamp,
        delivery_mode=PERSISTENT,
        headers=headers,
    )


def as_refused(owner: str, properties: Properties) -> tuple[Properties, dict[str, Any]]:
    """A letter's properties as its sender set them, and the headers that its refusal added.

    Args:
        owner: the service whose dead queue it is in.
    """
    headers = properties.headers or {}
    if properties.user_id != owner or REASON not in headers:
        return properties, {}
    return (
        Properties(
            content_type=properties.content_type,
            content_encoding=properties.content_encoding,
            correlation_id=properties.correlation_id,
            message_id=properties.message_id,
            message_type=properties.message_type,
            app_id=properties.app_id,
            timestamp=properties.timestamp,
            delivery_mode=properties.delivery_mode,
            user_id=_text(headers.get(SENDER)),
            headers={name: value for name, value in headers.items() if name not in OURS},
        ),
        {name: headers[name] for name in OURS if name in headers},
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
