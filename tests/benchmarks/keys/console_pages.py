"""Pages of the console, asked for by one operator: the newest of 1,000,000 wires, and of 1,000,000 events."""

from __future__ import annotations

import secrets
import statistics
import time
from datetime import UTC, datetime, timedelta

import aiohttp

from deploy.local.ports import LOOPBACK
from deploy.local.services import SERVICES
from libs.contracts.principal import Role
from libs.persistence.engine import open_database
from services.gateway.login_repository import add_session
from services.gateway.logins import session_digest
from tests.benchmarks.bench import Bench
from tests.benchmarks.dispatching import DISPATCHER
from tests.benchmarks.figures import Figure, Series, limited
from tests.benchmarks.partner import TENANT
from tests.benchmarks.stored_rows import fill_events
from tests.benchmarks.stored_wires import fill_wires
from tests.support.operators import new_operator
from tests.support.stack import Stack

GOAL, FLOOR = 150.0, 300.0
"""Milliseconds."""
ROWS = 1_000_000
ASKED = {"gateway", "payments", DISPATCHER, "console"}
PAGES = ("wires", "events")
COOKIE = "bankside-session"
HOUR = timedelta(hours=1)


async def run(bench: Bench) -> list[Figure]:
    asked = [service for service in SERVICES if service.name in ASKED]
    async with bench.stack(asked) as stack:
        await _fill(stack)
        url = f"http://{LOOPBACK}:{stack.env['BANKSIDE_CONSOLE_PORT']}"
        headers = {"Cookie": f"{COOKIE}={await _session(stack)}"}
        async with aiohttp.ClientSession(url, headers=headers) as session:
            found = {}
            for page in PAGES:
                await _median(session, page, bench.plan.warm_up_seconds)
                rounds = [
                    await _median(session, page, bench.plan.seconds)
                    for _ in range(bench.plan.rounds)
                ]
                found[page] = Series(tuple(rounds), "ms")
    slowest = max(found.values(), key=lambda series: series.median)
    note = "; ".join(f"{page}: {series}" for page, series in found.items())
    return [limited("console_pages", slowest, goal=GOAL, floor=FLOOR, note=note)]


async def _fill(stack: Stack) -> None:
    urls = stack.environment.database_urls
    await fill_wires(urls["payments_owner"], ROWS)
    database = open_database(urls[DISPATCHER], "bench")
    try:
        await fill_events(
            *(database, urls[f"{DISPATCHER}_owner"]),
            tenant=TENANT,
            customers=100,
            count=ROWS,
            over=timedelta(days=28),
        )
    finally:
        await database.close()


async def _session(stack: Stack) -> str:
    """The token of an operator who has logged in."""
    operator = await new_operator(stack.environment, Role.VIEWER)
    token = secrets.token_urlsafe(32)
    database = open_database(stack.environment.database_urls["gateway"], "bench")
    try:
        async with database.transaction() as connection:
            until = datetime.now(UTC) + HOUR
            name = operator.tenant
            await add_session(connection, session_digest(token), name, until, HOUR, enrolment=False)
    finally:
        await database.close()
    return token


async def _median(session: aiohttp.ClientSession, page: str, seconds: float) -> float:
    """Milliseconds of a page, one after the other for so long; every answer is a page with rows."""
    took: list[float] = []
    until = time.monotonic() + seconds
    while not took or time.monotonic() < until:
        began = time.perf_counter()
        async with session.get(f"/{page}", allow_redirects=False) as answer:
            text = await answer.text()
        took.append(1000 * (time.perf_counter() - began))
        assert answer.status == 200, answer.status
        assert text.count("<tr>") > 20, f"{page}: {text.count('<tr>')} rows"
    return statistics.median(took)
