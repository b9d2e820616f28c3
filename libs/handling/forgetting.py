"""A command of which nothing was started is forgotten once its caller has got the error that says so
(`running.STARTED_NOTHING`: 403 `approver_is_initiator`, 422, 503).

    commit forgetting ──▶ publish the reply ──▶ routed: commit forgotten
                          (not with `MOST_NOTES` or more noted messages: driven on)
                                            ├─▶ certainly not routed: commit open, and drive on
                                            └─▶ not known: publish one again until its deadline, then park

A process that dies between the two commits leaves the last case to the next driver, which publishes a 503: that, too,
says that nothing was started. If it is not routed, the command is not open again: the first reply may have been routed.
"""

from __future__ import annotations

import time

import structlog

from libs.contracts.errors import Unavailable
from libs.handling.answers import CommandAnswers, error_reply
from libs.handling.parking import Parking
from libs.messaging.envelope import Reply
from libs.messaging.replier import NotKnownWhetherRouted
from libs.persistence import forgetting, inbox
from libs.persistence.engine import Database
from libs.runtime.crash import crash_point

FORGETTING_SECONDS = 1.0
"""Time left until the caller's deadline, at least, when forgetting begins: for the commit and the reply."""
ROUTED_SECONDS = 0.5
"""Time left until the deadline, at least, when the broker confirms the reply, so that the caller still accepts it."""
SEND_AGAIN_SECONDS = 0.25
NOT_KNOWN_WHETHER_TOLD = (
    "Nothing was started, but its caller may have been told so and have sent it again:"
    " retry it only if the caller has not, else abandon it."
)


class Forgetting:
    """Forgets commands of one service."""

    def __init__(
        self, service: str, database: Database, answers: CommandAnswers, parking: Parking
    ) -> None:
        self._service = service
        self._database = database
        self._answers = answers
        self._parking = parking
        self._log = structlog.get_logger("commands")

    async def forget(self, leased: inbox.Leased, reply: Reply, code: str) -> bool:
        """Send this reply, an error with this code that says that nothing was started, and forget the command. False
        when it goes on.

        Raises:
            LeaseLost: no reply was sent.
        """
        if leased.reply_to is None or not _in_time(leased, FORGETTING_SECONDS):
            return False
        # A caller that was answered `outcome_pending` relies on the command being driven on.
        if not self._answers.take_over(leased.message_id):
            return False
        async with inbox.fenced(self._database, leased) as connection:
            begun = await forgetting.begin(connection, leased, code)
        if not begun:
            self._answer_by_deadline(leased, leased.reply_to)
            return False
        crash_point(f"{self._service}.forgetting")
        try:
            routed = await self._send_confirmed(leased, leased.reply_to, reply)
        except NotKnownWhetherRouted as error:
            await self._send_later(leased, error)
            return True
        if routed:
            await self._forgotten(leased)
            return True
        crash_point(f"{self._service}.not_told")
        async with inbox.fenced(self._database, leased) as connection:
            await forgetting.go_on(connection, leased)
        crash_point(f"{self._service}.going_on")
        self._answer_by_deadline(leased, leased.reply_to)
        return False

    async def resume(self, leased: inbox.Leased) -> None:
        """Decide on a command that was left between the two commits. Raises LeaseLost."""
        if leased.reply_to is None or not _in_time(leased, FORGETTING_SECONDS):
            await self._parking.park(leased, NOT_KNOWN_WHETHER_TOLD)
            return
        reply = error_reply(
            str(leased.command_id), leased.message_id, Unavailable(), leased.request_id
        )
        try:
            routed = await self._send_confirmed(leased, leased.reply_to, reply)
        except NotKnownWhetherRouted as error:
            await self._send_later(leased, error)
            return
        if routed:
            await self._forgotten(leased)
        else:
            await self._send_later(leased, None)

    def _answer_by_deadline(self, leased: inbox.Leased, reply_to: str) -> None:
        self._answers.answer_by_deadline(
            str(leased.command_id), leased.message_id, reply_to, leased.deadline
        )

    async def _send_confirmed(self, leased: inbox.Leased, reply_to: str, reply: Reply) -> bool:
        """Raises NotKnownWhetherRouted."""
        seconds = leased.deadline - ROUTED_SECONDS - time.time()
        return await self._answers.send_confirmed(reply_to, reply, seconds)

    async def _forgotten(self, leased: inbox.Leased) -> None:
        crash_point(f"{self._service}.told")
        async with inbox.fenced(self._database, leased) as connection:
            await forgetting.forget(connection, leased)

    async def _send_later(self, leased: inbox.Leased, error: Exception | None) -> None:
        self._log.warning(
            "not_known_whether_told", command=str(leased.command_id), error=str(error or "")
        )
        async with inbox.fenced(self._database, leased) as connection:
            await inbox.postpone(
                connection, leased, seconds=SEND_AGAIN_SECONDS, error=Unavailable.code
            )


def _in_time(leased: inbox.Leased, seconds: float) -> bool:
    """Whether more than `seconds` are left until the caller's deadline."""
    return time.time() < leased.deadline - seconds
