"""Accepting dead letters of the dispatcher anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from libs.handling.acceptance import Ordering
from libs.handling.operating.letters import AcceptAnew, Append
from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter, NotReplayable
from libs.messaging.event_message import NotAnEvent, decode_event
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.topology import commands_queue, events_queue
from libs.persistence.engine import Database
from services.webhook_dispatcher.engine.ingest import Ingest
from services.webhook_dispatcher.repository.partitions import Partitions


def accept_anew(
    service: str,
    database: Database,
    sealer: MessageSealer,
    *,
    ordering: Ordering,
    retention: timedelta,
    clock: Callable[[], datetime],
) -> Mapping[str, AcceptAnew]:
    """By queue."""
    ingest = Ingest(database, Partitions(database), retention, clock, lambda _, __: None)

    async def accept_command(letter: DeadLetter, append: Append) -> None:
        await accept_command_anew(database, letter, append, service, sealer, ordering=ordering)

    async def accept_event(letter: DeadLetter, append: Append) -> None:
        """Record the event with its deliveries; the engine finds them at its next sweep."""
        try:
            event = decode_event(letter.properties, letter.body)
        except NotAnEvent as error:
            raise NotReplayable(str(error)) from error
        if await ingest.record([event], append):
            raise NotReplayable(
                "it can never be recorded: its id is none of ours, it is too old, or recording it fails"
            )

    return {commands_queue(service): accept_command, events_queue(service): accept_event}
