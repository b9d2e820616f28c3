"""Accepting dead letters of payments anew, for `bankside dead replay`."""

from __future__ import annotations

from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter
from libs.persistence.engine import Database
from services.payments.app import KEPT_FOR_EVER
from services.payments.settings import Settings


async def accept_command(database: Database, letter: DeadLetter) -> None:
    await accept_command_anew(database, letter, Settings.service, keep_for_ever=KEPT_FOR_EVER)
