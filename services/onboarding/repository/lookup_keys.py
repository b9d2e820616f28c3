"""Which lookup keys processes have had on their ring, by id.

A process does not find the EINs that are held by keys which it lacks. So a key comes to the front of the ring, where it
holds EINs, only after it was behind another one, for as long as the processes took to be started again.
"""

from __future__ import annotations

import structlog
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.sealing import LookupKeys
from libs.runtime.process import Misconfigured
from services.onboarding.tables import lookup_keys

_KNOWN = select(lookup_keys.c.key_id)
_ADD = insert(lookup_keys).on_conflict_do_nothing()


async def introduce(database: Database, keys: LookupKeys, variable: str) -> None:
    """Record the keys of this process. While the database is away nothing is checked: a process waits for it.

    Raises:
        Misconfigured: the first key is one that no process has had yet, and others have been used.
    """
    try:
        async with database.transaction() as connection:
            known = set((await connection.execute(_KNOWN)).scalars())
            first = keys.key_ids[0]
            if known and first not in known:
                raise Misconfigured(
                    f"put the key {first} at the end of {variable} and start every process of onboarding so; only then"
                    " move it to the front: no process has had it yet, and those without it would not find the EINs"
                    " that it holds."
                )
            await connection.execute(_ADD, [{"key_id": key_id} for key_id in keys.key_ids])
    except Exception as error:
        if not is_away(error):
            raise
        structlog.get_logger("onboarding").warning("lookup_keys_not_checked")
