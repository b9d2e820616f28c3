"""The identity provider's word as a JSON column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import Integer, Select, Table, Text, any_, bindparam, cast, select, union_all
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.async_engine import AsyncConnection
from services.onboarding.models import Verification
from services.onboarding.tables import customers, persons

_decoder = msgspec.json.Decoder(Verification)


def _versions_in(table: Table) -> Select[tuple[str, int]]:
    version = cast(table.c.verification["version"].astext, Integer).label("version")
    ids = bindparam("ids", type_=ARRAY(Text))
    return select(table.c.identity_id, version).where(table.c.identity_id == any_(ids))


_VERSIONS = union_all(_versions_in(customers), _versions_in(persons))


def to_column(verification: Verification) -> str:
    return msgspec.json.encode(verification).decode()


def from_column(text: str | None) -> Verification | None:
    return None if text is None else _decoder.decode(text)


async def known_versions(
    connection: AsyncConnection, identity_ids: Sequence[str]
) -> dict[str, int]:
    """The version that we hold of each record, businesses' and persons', of any tenant: the ids are the provider's."""
    rows = await connection.execute(_VERSIONS, {"ids": list(identity_ids)})
    return {row.identity_id: row.version for row in rows}
