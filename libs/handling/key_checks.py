"""At the start of a service: no key of its rings was replaced under its id."""

from __future__ import annotations

from libs.persistence import key_checks
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.runtime.process import Misconfigured
from libs.runtime.service_settings import MessagingSettings


async def require_known_keys(database: Database, settings: MessagingSettings) -> None:
    """Note the keys whose ids the database does not know yet. Those of the first start with this record are taken as
    the right ones. Waits for the database: a service does nothing with keys that were not checked.

    Raises:
        Misconfigured: the database knows other keys under their ids. None is noted then.
    """
    await until_available("key-checks", lambda: _note_keys(database, settings))


async def _note_keys(database: Database, settings: MessagingSettings) -> None:
    rings = settings.check_values()
    async with database.transaction() as connection:
        if others := await key_checks.note(connection, rings):
            raise Misconfigured(*(_sentence(settings, ring, key_id) for ring, key_id in others))


def _sentence(settings: MessagingSettings, ring: str, key_id: str) -> str:
    key = f"the key {key_id}" if key_id else "the key without an id"
    return (
        f"put {key} of {settings.variable(ring)} back as it was, or give this one an id that was never used: the"
        " database knows another key under that id. Where the one that it knows is the wrong one, as after a first"
        f" start with the wrong secrets, remove its row ({ring}, {key_id!r}) of the table {settings.service}.key_check"
        f" as {settings.service}_owner."
    )
