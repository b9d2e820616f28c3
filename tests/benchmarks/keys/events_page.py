"""A page of `GET …/events` at the end of a million events beside one at their start.

The events are those of one partner's customers over four weeks. Both pages are full, and are asked for as whoever
follows events does: after the id of the last event seen.
"""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from deploy.local.services import SERVICES
from libs.persistence.engine import open_database
from tests.benchmarks.bench import Bench
from tests.benchmarks.dispatching import DISPATCHER
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.partner import TENANT, new_key
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.stored_rows import fill_events
from tests.benchmarks.wrk import Load
from tests.support.api import Key
from tests.support.stack import Stack

GOAL, FLOOR = 0.8, 0.76
EVENTS = 1_000_000
CUSTOMERS = 100
OVER = timedelta(days=28)
PAGE = 50
"""The limit when none is asked for."""
CONNECTIONS = 16


async def run(bench: Bench) -> list[Figure]:
    asked = [service for service in SERVICES if service.name in {DISPATCHER, "gateway"}]
    async with bench.stack(asked) as stack:
        await _fill(stack)
        key = await new_key(stack, "--family", "partner", "--tenant", TENANT)
        end = await _page_after(bench, stack, key, EVENTS - PAGE)
        start = await _page_after(bench, stack, key, 1)
        ours, beside = await alternate(bench.plan, "/s", end.rate, start.rate)
    return [
        ratio(
            "events_page",
            ours,
            beside,
            goal=GOAL,
            floor=FLOOR,
            note=f"{end.told}; at the start: {start.told}",
        )
    ]


async def _fill(stack: Stack) -> None:
    urls = stack.environment.database_urls
    database = open_database(urls[DISPATCHER], "bench")
    try:
        await fill_events(
            *(database, urls[f"{DISPATCHER}_owner"]),
            tenant=TENANT,
            customers=CUSTOMERS,
            count=EVENTS,
            over=OVER,
        )
    finally:
        await database.close()


async def _page_after(bench: Bench, stack: Stack, key: Key, position: int) -> Load:
    """The page that follows an event. An answer is right when it has the page's last event."""
    connection = await asyncpg.connect(stack.environment.database_urls[DISPATCHER])
    try:
        after, last = [
            f"evt_{await connection.fetchval(_ID, TENANT, wanted)}"
            for wanted in (position, position + PAGE)
        ]
    finally:
        await connection.close()
    target = Target(stack.base_url, "GET", f"/partner/reseller/events?after={after}")
    return Load(
        stack.base_url,
        signed(target, key),
        f'"id":"{last}"',
        CONNECTIONS,
        ProcessorTime(parts_of(stack, bench.servers)),
    )


_ID = "SELECT id FROM event WHERE tenant = $1 AND position = $2"
