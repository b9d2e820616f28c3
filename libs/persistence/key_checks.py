"""Which keys a service has had: by ring and key id a check value, which tells that a key was replaced under its id.

Every other check goes by the id of a key. A key that is replaced under an id that was used finds no digest of the one
before and opens nothing that it sealed, while all of these name the id of a key that is on the ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import key_check as table

_NOTE = insert(table).on_conflict_do_nothing()
_NOTED = select(table.c.key_id, table.c.check_value).where(table.c.ring == bindparam("of_ring"))


async def note(
    connection: AsyncConnection, ring: str, check_values: Mapping[str, bytes]
) -> Sequence[str]:
    """Note the keys of a ring whose ids are new; the ids under which other keys are noted.

    Of processes that start at once with different keys under one id, the others wait for the first one's transaction.
    """
    values = [
        {"ring": ring, "key_id": key_id, "check_value": value}
        for key_id, value in sorted(check_values.items())
    ]
    await connection.execute(_NOTE, values)
    noted = {
        row.key_id: row.check_value for row in await connection.execute(_NOTED, {"of_ring": ring})
    }
    return [key_id for key_id, value in check_values.items() if noted[key_id] != value]
