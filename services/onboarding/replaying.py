"""Accepting dead letters of onboarding anew, for `bankside dead replay`."""

from __future__ import annotations

from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter
from libs.persistence.engine import Database
from services.onboarding.ordering import UNORDERED, CustomerOrdering
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.onboarding.settings import Settings


async def accept_command(database: Database, letter: DeadLetter) -> None:
    settings = Settings.load()
    vault = Vault(settings.ring("storage_keys"), settings.lookup())
    ordering = CustomerOrdering(Store(vault))
    await accept_command_anew(
        database, letter, settings.service, ordering=ordering, unordered=UNORDERED
    )
