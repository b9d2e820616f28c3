"""Commands whose callers were told that they go on, and which their service says it has not started.

A service forgets a command only when the reply that says so reached the queue of its caller in time. A process that
was frozen reads that reply after its own deadline: it has told its caller `outcome_pending`, which promises that the
command goes on. So it sends the command again, as the caller would under the same key, until its service has it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec
import structlog
from uuid_utils import uuid7

from libs.contracts.errors import (
    BanksideError,
    IdempotencyInProgress,
    OutcomePending,
    Unavailable,
)
from libs.messaging.envelope import Envelope, Reply

KEPT = 1000
"""Commands at most: those that were given up last. A late reply waits in a queue already when its process goes on."""
PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
PATIENCE_SECONDS = 20.0
"""For the reply to each."""


class LateRefusals:
    """Of one process.

    Args:
        send: publishes a command and returns its reply; raises Unavailable or OutcomePending as `Caller.command`.
    """

    def __init__(self, send: Callable[[Envelope], Awaitable[Reply]]) -> None:
        self._send = send
        self._told_pending: OrderedDict[str, Envelope] = OrderedDict()
        self._sending: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("caller")

    def told_pending(self, envelope: Envelope) -> None:
        """The caller of this command is told `outcome_pending`."""
        self._told_pending[envelope.message_id] = envelope
        if len(self._told_pending) > KEPT:
            self._told_pending.popitem(last=False)

    def take(self, reply: Reply) -> None:
        """A reply for which nobody waits any more."""
        envelope = self._told_pending.pop(reply.to, None)
        if envelope is not None and _is_refused(reply):
            sending = asyncio.create_task(self._send_again(envelope), name="send-again")
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send_again(self, envelope: Envelope) -> None:
        self._log.warning("command_sent_again", command=envelope.id)
        for pause_seconds in PAUSES_SECONDS:
            try:
                reply = await self._send(
                    msgspec.structs.replace(
                        envelope,
                        message_id=str(uuid7()),
                        deadline=time.time() + PATIENCE_SECONDS,
                    )
                )
            except (Unavailable, OutcomePending) as error:
                reason: BanksideError = error
            else:
                # A service that is still forgetting it says that it is in progress, and takes it afterwards.
                if not (_is_refused(reply) or _is(reply, IdempotencyInProgress)):
                    return
                assert reply.error is not None
                reason = reply.error.to_error()
            await asyncio.sleep(pause_seconds)
        if not isinstance(reason, IdempotencyInProgress):
            self._log.error("command_not_sent_again", command=envelope.id, error=reason.code)


def _is_refused(reply: Reply) -> bool:
    return _is(reply, Unavailable)


def _is(reply: Reply, error: type[BanksideError]) -> bool:
    return reply.error is not None and reply.error.code == error.code
