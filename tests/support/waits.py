"""Ending what a service waits for, so that no test has to.

Leases of processes that died, pauses between drives, sends that may still arrive at a provider.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg

from tests.support.infrastructure import Environment

LEASES_END = {
    "inbox": "UPDATE inbox SET lease_until = '-infinity' WHERE lease_until IS NOT NULL",
    "leader_lease": "UPDATE leader_lease SET lease_until = '-infinity'",
}
"""By the table, which not every service has."""
OPEN = "SELECT command_id, due_at > clock_timestamp() AS is_paused FROM inbox WHERE finished_at IS NULL"
IS_DUE = "UPDATE inbox SET due_at = clock_timestamp() WHERE command_id = $1 AND finished_at IS NULL"


ARRIVES = {
    "payments": "UPDATE wires SET last_sent_at = last_sent_at - interval '1 hour' WHERE transaction_id = $1",
    "onboarding": "UPDATE saga_steps SET last_sent_at = last_sent_at - interval '1 hour' WHERE saga_id = $1",
}
"""By the service."""


@asynccontextmanager
async def connected(environment: Environment, service: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the service's database, for a wait that asks again and again."""
    connection = await asyncpg.connect(environment.database_urls[service])
    try:
        yield connection
    finally:
        await connection.close()


async def leases_end(environment: Environment, service: str) -> None:
    """As if the leases of this service had run out, on commands and on feeds. No process of it may run."""
    async with connected(environment, service) as connection:
        for table, ending in LEASES_END.items():
            if await connection.fetchval("SELECT to_regclass($1)", table) is not None:
                await connection.execute(ending)


async def pauses_end(connection: asyncpg.Connection) -> int:
    """As if the pauses of the commands of a service were over; how many commands are open.

    They end one by one, since a process that renews the leases of many must not deadlock with it.
    """
    commands = await connection.fetch(OPEN)
    for command in commands:
        if command["is_paused"]:
            await connection.execute(IS_DUE, command["command_id"])
    return len(commands)


async def last_send_arrives(environment: Environment, service: str, sent: str) -> None:
    """As if what was sent last, of a wire or of the steps of a saga, had arrived by now or never would."""
    async with connected(environment, service) as connection:
        await connection.execute(ARRIVES[service], UUID(sent))
