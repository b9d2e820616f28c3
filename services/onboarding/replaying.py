"""Accepting dead letters of onboarding anew."""

from __future__ import annotations

from collections.abc import Mapping

from libs.handling.operating.letters import AcceptAnew, Append
from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.topology import commands_queue
from libs.persistence.engine import Database
from services.onboarding.ordering import UNORDERED, CustomerOrdering
from services.onboarding.repository.store import Store


def accept_anew(
    service: str, database: Database, store: Store, sealer: MessageSealer
) -> Mapping[str, AcceptAnew]:
    """By queue."""
    ordering = CustomerOrdering(store)

    async def accept_command(letter: DeadLetter, append: Append) -> None:
        await accept_command_anew(
            database, letter, append, service, sealer, ordering=ordering, unordered=UNORDERED
        )

    return {commands_queue(service): accept_command}
