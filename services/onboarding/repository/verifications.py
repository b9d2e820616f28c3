"""The identity provider's word as a JSON column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.onboarding.models import Verification

_decoder = msgspec.json.Decoder(Verification)


def to_column(verification: Verification) -> str:
    return msgspec.json.encode(verification).decode()


def from_column(text: str | None) -> Verification | None:
    return None if text is None else _decoder.decode(text)


async def known_versions(
    connection: AsyncConnection, identity_ids: Sequence[str]
) -> dict[str, int]:
    """The version that we hold of each record, businesses' and persons', of any tenant: the ids are the provider's."""
    rows = await connection.execute(
        text(
            "SELECT identity_id, CAST(verification->>'version' AS integer) AS version"
            " FROM customers WHERE identity_id = ANY(:ids)"
            " UNION ALL SELECT identity_id, CAST(verification->>'version' AS integer)"
            " FROM persons WHERE identity_id = ANY(:ids)"
        ),
        {"ids": list(identity_ids)},
    )
    return {row.identity_id: row.version for row in rows}
