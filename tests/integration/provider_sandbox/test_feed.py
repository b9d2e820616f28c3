from __future__ import annotations

import asyncio
import uuid

from tests.integration.provider_sandbox.bank import Bank, business
from tests.support.pace import pace

WRITERS = 20
EACH = 10


async def test_a_reader_beside_twenty_writers_misses_nothing(bank: Bank) -> None:
    before = 0
    while page := (await bank.get("/identity/events", after=before, limit=500)).body["events"]:
        before = page[-1]["position"]
    written: set[str] = set()
    read: list[tuple[int, str]] = []

    async def write() -> None:
        for _ in range(EACH):
            created = await bank.done("/identity/customers", business(str(uuid.uuid4())))
            written.add(created["identity_id"])

    async def poll() -> None:
        while len(read) < WRITERS * EACH:
            after = read[-1][0] if read else before
            page = (await bank.get("/identity/events", after=after, limit=7)).body["events"]
            read.extend((event["position"], event["identity_id"]) for event in page)

    async with asyncio.timeout(30 * pace()), asyncio.TaskGroup() as group:
        group.create_task(poll())
        for _ in range(WRITERS):
            group.create_task(write())

    assert [position for position, _ in read] == list(range(before + 1, before + 1 + len(read)))
    assert {identity_id for _, identity_id in read} == written
