"""A page of events reads those that it shows, however many there are of other tenants and types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts.operating.pages import Order
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import open_database
from services.webhook_dispatcher.repository import events, operating_events
from tests.integration.webhooks.api.desk import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

OF_OTHERS = 3000
WIRES = ["wire.completed", "wire.returned"]

Page = Callable[[AsyncConnection, Desk], Coroutine[Any, Any, Any]]

_ADD = """
    INSERT INTO event SELECT current_date, gen_random_uuid(), n, $1, 'c', 'person.updated', 'r' || n, 1, '', now()
    FROM generate_series(1, $2::int) n
"""
_READ = text(
    "SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_xact_user_tables WHERE relname LIKE 'event\\_2%'"
)


@pytest_asyncio.fixture(loop_scope="session")
async def busy(desk: Desk) -> AsyncIterator[Desk]:
    """With many events of another tenant, and a connection whose plans are not those of an emptier table."""
    other = f"{desk.tenant}-other"
    await desk.database.execute(_ADD, other, OF_OTHERS)
    await desk.database.execute("ANALYZE event")
    url = desk.stack.environment.database_urls["webhook_dispatcher"]
    recorder = open_database(url, "desk", pool_size=1)
    yield replace(desk, recorder=recorder)
    await recorder.close()
    await desk.database.execute("DELETE FROM event WHERE tenant = $1", other)


def of_operators(order: Order, *, types: list[str] | None = None, other: bool = False) -> Page:
    async def page(connection: AsyncConnection, desk: Desk) -> Any:
        return await operating_events.events(
            connection,
            tenant=f"{desk.tenant}-other" if other else desk.tenant,
            types=types,
            resource_id=None,
            order=order,
            place=None,
            limit=50,
        )

    return page


def of_subscribers(*, is_partner: bool, types: list[str] | None = None) -> Page:
    async def page(connection: AsyncConnection, desk: Desk) -> Any:
        who = desk.partner if is_partner else desk.customer
        return await events.following(connection, who, after=0, types=types, limit=50)

    return page


PAGES = [
    *(of_operators(order, types=types) for order in Order for types in (None, WIRES)),
    *(of_operators(order, types=WIRES, other=True) for order in Order),
    *(
        of_subscribers(is_partner=is_partner, types=types)
        for is_partner in (True, False)
        for types in (None, WIRES)
    ),
]


async def test_a_page_of_a_rare_tenant_or_type_does_not_read_the_others(busy: Desk) -> None:
    read = []

    for page in PAGES:
        async with busy.recorder.transaction() as connection:
            assert await page(connection, busy) == []
            read.append((await connection.execute(_READ)).scalar_one())

    assert len(read) > 1
    assert [rows for rows in read if rows >= OF_OTHERS / 10] == []
