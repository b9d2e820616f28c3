"""An account whose opening onboarding ends late, while ledger_read dies before and after it reports it."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import asyncpg

from tests.support.live import CUSTOMERS, Live
from tests.support.people import application, new_key
from tests.support.waiting import eventually
from tests.support.waits import leases_end

KILLED = -signal.SIGKILL
ENDED_SECONDS = 60.0


async def test_an_account_that_is_opened_for_long_is_told_once_through_kills(live: Live) -> None:
    """Increase has the account, and cannot give it a number at first."""
    body, key, service = application(), new_key(), live.stack.services["ledger_read"]
    await live.bank.fault("core", "create_account_number", "error")
    caller = asyncio.create_task(live.partner.post(CUSTOMERS, body, key))

    async def waits() -> bool:
        return bool(await query(live, "SELECT count(*) = 1 FROM waiting_account"))

    await eventually("the account's entries wait", waits)
    died = []
    for point in ("before_commit", "after_commit"):
        await service.kill()
        await leases_end(live.stack.environment, "ledger_read")
        service.spawn(BANKSIDE_CRASH_AT=f"feed.waiting.{point}")
        await live.bank.heal()
        await query(live, "UPDATE waiting_account SET due_at = '-infinity'")
        died.append(await service.ended(ENDED_SECONDS))
    await leases_end(live.stack.environment, "ledger_read")
    await service.start()
    await caller
    final = await live.final("POST", CUSTOMERS, body, key)

    assert died == [KILLED, KILLED]
    assert final.data["status"] == "approved"
    await live.exists_once(final.data)
    assert await query(live, "SELECT count(*) FROM waiting_entry") == 0


async def query(live: Live, statement: str) -> Any:
    connection = await asyncpg.connect(live.stack.environment.database_urls["ledger_read"])
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
