"""Answering the callers of commands: with the final reply, or with `outcome_pending` before the deadline."""

from __future__ import annotations

import asyncio
import time

from libs.contracts.errors import BanksideError, OutcomePending
from libs.messaging.envelope import Reply, WireError
from libs.messaging.replier import Replier

ANSWER_MARGIN_SECONDS = 3.0
"""Services answer this long before the gateway's deadline with what they know (interface §3)."""


class CommandAnswers:
    """Sends each request its first answer, and no other."""

    def __init__(self, replier: Replier) -> None:
        self._replier = replier
        self._pending: dict[str, asyncio.TimerHandle] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def answer_by_deadline(
        self, command_id: str, message_id: str, reply_to: str | None, deadline: float
    ) -> None:
        """Answer `outcome_pending` shortly before the deadline, unless the request is answered earlier."""
        if reply_to is None:
            return
        reply = error_reply(command_id, message_id, OutcomePending())
        left = max(0.0, deadline - ANSWER_MARGIN_SECONDS - time.time())
        self._pending[message_id] = asyncio.get_running_loop().call_later(
            left, self.send, reply_to, reply
        )

    def take_over(self, message_id: str) -> bool:
        """Cancel the answer `outcome_pending`. False when the request is answered already."""
        timer = self._pending.pop(message_id, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    async def send_confirmed(self, reply_to: str, reply: Reply, seconds: float) -> bool:
        """Answer with a publisher confirm: true when the reply was routed to the caller's queue, false when it was not.

        Raises:
            NotKnownWhetherRouted
        """
        return await self._replier.reply_confirmed(reply_to, reply, seconds)

    def send(self, reply_to: str, reply: Reply) -> None:
        """Answer now."""
        self.take_over(reply.to)
        task = asyncio.create_task(self._replier.reply(reply_to, reply), name=f"reply:{reply.id}")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def close(self) -> None:
        """Stop the timers: the next driver of the commands answers, or the gateway does at its deadline."""
        for timer in self._pending.values():
            timer.cancel()
        self._pending.clear()


def error_reply(
    command_id: str, message_id: str, error: BanksideError, request_id: str | None = None
) -> Reply:
    return Reply(id=command_id, to=message_id, error=WireError.of(error), request_id=request_id)
