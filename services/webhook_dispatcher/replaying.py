"""Accepting dead letters of the dispatcher anew, for `bankside dead replay`."""

from __future__ import annotations

from datetime import timedelta

from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter, NotReplayable
from libs.messaging.event_consumer import NotAnEvent, decode_event
from libs.persistence.engine import Database
from services.webhook_dispatcher.app import in_order_of_recovery
from services.webhook_dispatcher.engine.ingest import Ingest
from services.webhook_dispatcher.engine.run import utc_now
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.settings import Settings


async def accept_command(database: Database, letter: DeadLetter) -> None:
    await accept_command_anew(database, letter, Settings.service, ordering=in_order_of_recovery)


async def accept_event(database: Database, letter: DeadLetter) -> None:
    """Record the event with its deliveries; the engine of the running service finds them at its next sweep."""
    try:
        event = decode_event(letter.properties, letter.body)
    except NotAnEvent as error:
        raise NotReplayable(str(error)) from error
    retention = timedelta(days=Settings.load().retention_days)
    ingest = Ingest(database, Partitions(database), retention, utc_now, lambda _, __: None)
    if await ingest.record([event]):
        raise NotReplayable("it can never be recorded: its id is none of ours, or it is too old")
