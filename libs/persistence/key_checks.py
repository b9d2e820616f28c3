"""Which keys a service has had: by ring and key id a check value, which tells that a key was replaced under its id.

Every other check goes by the id of a key. A key that is replaced under an id that was used finds no digest of the one
before and opens nothing that it sealed, while all of these name the id of a key that is on the ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import key_check as table

_NOTE = insert(table).on_conflict_do_nothing()
_NOTED = select(table.c.ring, table.c.key_id, table.c.check_value)


async def note(
    connection: AsyncConnection, rings: Mapping[str, Mapping[str, bytes]]
) -> Sequence[tuple[str, str]]:
    """Note the keys whose ids are new; the rings and ids under which other keys are noted.

    Of processes that start at once with different keys under one id, the others wait for the first one's transaction.

    Args:
        rings: the check values by ring and key id.
    """
    given = {
        (ring, key_id): value
        for ring, check_values in sorted(rings.items())
        for key_id, value in sorted(check_values.items())
    }
    noted = await _noted(connection)
    if new := given.keys() - noted.keys():
        rows = [
            {"ring": ring, "key_id": key_id, "check_value": given[ring, key_id]}
            for ring, key_id in sorted(new)
        ]
        await connection.execute(_NOTE, rows)
        noted = await _noted(connection)
    return [name for name, value in given.items() if noted[name] != value]


async def _noted(connection: AsyncConnection) -> Mapping[tuple[str, str], bytes]:
    return {(row.ring, row.key_id): row.check_value for row in await connection.execute(_NOTED)}
