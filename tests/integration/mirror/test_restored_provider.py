"""A provider that was restored from a backup, and the statement by which its mirror is read anew."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg

from tests.integration.mirror.mirrors import Mirror, at, newest_first, some
from tests.support.infrastructure import Environment

README = Path(__file__).parents[3] / "deploy" / "README.md"


def documented_statement() -> str:
    [statement] = re.findall(r"TRUNCATE ledger_read\.[^;]+;", README.read_text())
    return str(statement)


async def test_after_the_documented_statement_the_mirror_has_what_the_provider_has(
    mirror: Mirror, environment: Environment, account_id: str
) -> None:
    kept, lost = some(4), some(3, first=10)
    mirror.source.post(account_id, *kept, *lost)
    await mirror.catch_up(account_id)
    sent_again = replace(lost[0], provider_id="posting_again", tx_uuid=uuid4(), settled_at=at(30))
    mirror.source.histories[account_id] = [*kept, sent_again]
    connection = await asyncpg.connect(environment.database_urls["postgres"])

    await connection.execute(documented_statement())
    await connection.close()
    await mirror.catch_up(account_id)

    assert await mirror.page(account_id) == (newest_first([*kept, sent_again]), 5)
