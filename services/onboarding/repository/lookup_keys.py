"""Which lookup keys processes have had on their ring, by id.

A process does not find the EINs that are held by keys which it lacks. So a key comes to the front of the ring, where it
holds EINs, only after it was behind another one, for as long as the processes took to be started again. Processes of
releases without this record have had the keys of the digests that are stored.
"""

from __future__ import annotations

from sqlalchemy import LargeBinary, bindparam, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.sealing import DIGEST_BYTES, LookupKeys
from libs.runtime.process import Misconfigured
from services.onboarding.tables import ein_holds, external_accounts, lookup_keys

_KNOWN = select(lookup_keys.c.key_id)
_ADD = insert(lookup_keys).on_conflict_do_nothing()
_begin = bindparam("begin", type_=LargeBinary)
_IS_STORED = select(
    or_(
        *(
            exists().where(
                func.length(digest) == func.length(_begin) + DIGEST_BYTES,
                func.substr(digest, 1, func.length(_begin)) == _begin,
            )
            for digest in (ein_holds.c.ein_digest, external_accounts.c.number_digest)
        )
    )
)


async def introduce(database: Database, keys: LookupKeys, variable: str) -> None:
    """Record the keys of this process.

    Raises:
        Misconfigured: the first key is one that no process has had yet, as far as this database tells, and others have
            been used.
    """
    async with database.transaction() as connection:
        known = set((await connection.execute(_KNOWN)).scalars())
        first = keys.key_ids[0]
        if known and first not in known and not await _is_stored(connection, first):
            raise Misconfigured(
                f"put the key {first} at the end of {variable} and start every process of onboarding so; only then"
                " move it to the front: no process has had it yet, and those without it would not find the EINs"
                f" that it holds. Where the database was restored, put its keys ({_named(known)}) in front again."
            )
        await connection.execute(_ADD, [{"key_id": key_id} for key_id in keys.key_ids])


async def _is_stored(connection: AsyncConnection, key_id: str) -> bool:
    """Whether a digest by the key is stored. Reads all digests where none is: only before a start is refused."""
    found = await connection.execute(_IS_STORED, {"begin": LookupKeys.beginning(key_id)})
    return bool(found.scalar_one())


def _named(key_ids: set[str]) -> str:
    return ", ".join(sorted(key_id or "the one without an id" for key_id in key_ids))
