"""Accepting dead letters of payments anew."""

from __future__ import annotations

from collections.abc import Mapping

from libs.handling.operating.letters import AcceptAnew, Append
from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.topology import commands_queue
from libs.persistence.engine import Database


def accept_anew(
    service: str, database: Database, sealer: MessageSealer
) -> Mapping[str, AcceptAnew]:
    """By queue."""

    async def accept_command(letter: DeadLetter, append: Append) -> None:
        await accept_command_anew(database, letter, append, service, sealer)

    return {commands_queue(service): accept_command}
