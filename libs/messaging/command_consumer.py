"""Consuming commands, which are acked once they are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

import structlog

from libs.messaging.consumption import HOLD_SECONDS, Consumption
from libs.messaging.deadlines import within
from libs.messaging.delivery import Delivery, settle
from libs.messaging.envelope import Envelope, NewerEnvelope, NotAnEnvelope, decode_command
from libs.messaging.poison import SUSPECT_RETURNS, Suspects, returns_of
from libs.messaging.refusing import WRONG_SENDER, Refuser
from libs.messaging.senders import NO_SENDER, owns_replies, senders_of_commands
from libs.messaging.session import Session
from libs.messaging.topology import commands_queue, declare_commands

COMMAND_PREFETCH = 64
CHECK_SECONDS = 6.0
"""For asking whether commands can be recorded: the database has its own bounds, of 5 s for a connection."""

NOT_ITS_TO_SEND = "Its sender may not send it, or directed its reply to another service."

Accept = Callable[[Envelope, str | None, bool], Coroutine[Any, Any, None]]
"""Records the command (and its reply queue); returns once that is committed, however long the database is away. The
flag says whether its message was delivered before.

Raises:
    MayBeForgotten, UnknownKey
"""

Recordable = Callable[[], Coroutine[Any, Any, None]]
"""Checks, without a command, whether commands can be recorded; raises when they cannot."""


class MayBeForgotten(Exception):
    """The command is so old that it may have been carried out and purged: it was not recorded. The text is for
    operators.
    """


class UnknownKey(Exception):
    """A value of the command is sealed by a key that the service lacks: it was not recorded. The text is for
    operators.
    """


class _Recording(NamedTuple):
    since: float
    """By the loop's clock."""
    accepting: asyncio.Task[None]


class CommandConsumer:
    """A part of the broker that hands each command to `accept` and acks it afterwards.

    | command | what becomes of it |
    |---|---|
    | recorded | acked; a crash before leaves it with the broker |
    | not to be decoded, of a later version, or never to be recorded | moved to the dead queue |
    | so old that it may have been carried out and purged | moved to the dead queue |
    | sealed by a key that the service lacks | moved to the dead queue |
    | from a sender that the table does not allow, or with replies directed to another | moved to the dead queue |
    | returned by other deliveries too often | see `libs.messaging.poison` |
    | unacked while nothing can be recorded | requeued after `HOLD_SECONDS`; the consumer pauses until it can record |

    A requeued command is still being recorded here, too: recording a command twice has one effect, and another process
    may reach the database when this one does not.
    """

    def __init__(self, service: str, accept: Accept, recordable: Recordable) -> None:
        self._accept = accept
        self._recordable = recordable
        self._senders = senders_of_commands(service)
        self._any_senders = frozenset().union(*self._senders.values())
        self._queue = commands_queue(service)
        self._consumption = Consumption(
            self._queue,
            partial(declare_commands, service=service),
            COMMAND_PREFETCH,
            self._on_message,
            has_dead_queue=True,
            works=lambda: bool(self._recording),
            waits=lambda: bool(self._unacked) and not self._recording,
            pause_or_resume=self._pause_or_resume,
        )
        self._unacked: set[Delivery] = set()
        self._nothing_unacked = asyncio.Event()
        self._nothing_unacked.set()
        self._recording: dict[bytes, _Recording] = {}
        """By body, the oldest first: a message that is delivered again meanwhile is recorded once."""
        self._check: asyncio.Task[bool] | None = None
        """Finds out whether commands can be recorded."""
        self._suspects = Suspects()
        self._refuser = Refuser(self._queue)
        self._log = structlog.get_logger("commands")

    async def attach(self, session: Session) -> None:
        await self._refuser.attach(session)
        await self._consumption.attach(session)

    def detach(self) -> None:
        self._give_up_check()
        self._consumption.detach()
        self._refuser.detach()

    def caught_up_to(self) -> float | None:
        """Every command that was sent before this time (Unix seconds) has been delivered; None: not known."""
        return self._consumption.caught_up_to

    async def stop(self, seconds: float) -> None:
        """Take no more commands; wait up to `seconds` for those taken to be recorded and acked."""
        self._give_up_check()
        await self._consumption.stop()
        try:
            await within(seconds, self._nothing_unacked.wait(), name="unacked-commands")
        except TimeoutError:
            self._log.warning("commands_left_to_the_broker", count=len(self._unacked))

    async def _pause_or_resume(self) -> None:
        """Pause while nothing can be recorded; resume when it can. It does not wait to find out which: a database may
        take seconds to fail, and the session's watch has the broker to look after.
        """
        if self._consumption.is_paused:
            if self._poll_recordable():
                await self._consumption.resume()
            return
        oldest = next(iter(self._recording.values()), None)
        is_overdue = (
            oldest is not None and asyncio.get_running_loop().time() - oldest.since > HOLD_SECONDS
        )
        if not is_overdue:
            self._give_up_check()
        elif self._poll_recordable() is False:
            await self._consumption.pause()
            for message in list(self._unacked):
                await settle(message.requeue(), self._log)

    def _poll_recordable(self) -> bool | None:
        """Whether commands can be recorded, by the check that an earlier call began; None: it has not ended. Begins
        one, unless one is under way or they can.
        """
        check = self._check
        if check is not None and not check.done():
            return None
        recordable = check.result() if check is not None else None
        self._check = (
            None
            if recordable
            else asyncio.create_task(self._is_recordable(), name=f"check:{self._queue}")
        )
        return recordable

    def _give_up_check(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    async def _is_recordable(self) -> bool:
        try:
            await within(CHECK_SECONDS, self._recordable(), name="recordable")
        except Exception as error:  # in whichever way it cannot be recorded
            self._log.warning("recording_unavailable", error=repr(error))
            return False
        return True

    async def _on_message(self, message: Delivery) -> None:
        self._unacked.add(message)
        self._nothing_unacked.clear()
        try:
            await self._take(message)
        finally:
            self._unacked.discard(message)
            if not self._unacked:
                self._nothing_unacked.set()

    async def _take(self, message: Delivery) -> None:
        try:
            envelope = decode_command(message.body)
        except NotAnEnvelope as error:
            await self._refuse_undecoded(message, error)
            return
        sender = message.properties.user_id
        if sender not in self._senders.get(envelope.operation, NO_SENDER) or not owns_replies(
            sender, message.properties.reply_to
        ):
            self._log.error("sender_refused", sender=sender, operation=envelope.operation)
            await self._refuse(message, WRONG_SENDER, NOT_ITS_TO_SEND)
            return
        if returns_of(message) < SUSPECT_RETURNS:
            await self._record(message, envelope)
        elif self._suspects.is_poison(message):
            self._log.error(
                "poison_message_refused", command=envelope.id, returns=returns_of(message)
            )
            because = (
                f"It came back {returns_of(message)} times: it may end each process that takes it."
            )
            await self._refuse(message, "poison", because)
        else:
            async with self._suspects.alone(message):
                await self._record(message, envelope)

    async def _refuse_undecoded(self, message: Delivery, error: NotAnEnvelope) -> None:
        # The sender comes first: one that may send no command here tells nothing about releases.
        if message.properties.user_id not in self._any_senders:
            self._log.error("sender_refused", **message.origin)
            await self._refuse(message, WRONG_SENDER, NOT_ITS_TO_SEND)
        elif isinstance(error, NewerEnvelope):
            self._log.error("envelope_of_a_later_release", cause=str(error), **message.origin)
            because = f"Only a later release understands it ({error})."
            await self._refuse(message, "newer_version", because)
        else:
            self._log.error("not_an_envelope", cause=str(error), **message.origin)
            await self._refuse(message, "unreadable", "This release cannot read it.")

    async def _record(self, message: Delivery, envelope: Envelope) -> None:
        recording = self._recording.get(message.body)
        if recording is None:
            accepting = asyncio.create_task(
                self._accept(envelope, message.properties.reply_to, message.is_redelivered),
                name=f"accept:{envelope.id}",
            )
            recording = _Recording(asyncio.get_running_loop().time(), accepting)
            self._recording[message.body] = recording
            accepting.add_done_callback(partial(self._recorded, message.body))
        try:
            # Shielded: losing the channel cancels its callbacks, and must not stop a recording half-way.
            await asyncio.shield(recording.accepting)
        except MayBeForgotten as error:
            self._log.error("may_be_forgotten", command=envelope.id)
            await self._refuse(message, "may_be_forgotten", str(error))
            return
        except UnknownKey as error:
            self._log.error("missing_key", command=envelope.id, cause=str(error))
            await self._refuse(message, "missing_key", str(error))
            return
        except Exception as error:
            # It would fail again, and unacked it would occupy a place of the prefetch for ever.
            self._log.error("not_acceptable", command=envelope.id, exc_info=error)
            because = f"It can never be recorded ({type(error).__name__})."
            await self._refuse(message, "not_recordable", because)
            return
        await settle(message.ack(), self._log, command=envelope.id)

    def _recorded(self, body: bytes, accepting: asyncio.Task[None]) -> None:
        del self._recording[body]
        self._consumption.progressed()
        if not accepting.cancelled():
            accepting.exception()  # raised in `_record`, unless every delivery of it was lost

    async def _refuse(self, message: Delivery, reason: str, because: str) -> None:
        await self._refuser.refuse(message, reason, because, self._log)
