"""The broker or the database dies in the middle of work: everybody is answered, and everything is done once.

Books that agree with the bank's afterwards are part of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.support.api import Answer, signed_headers
from tests.support.infrastructure import Environment
from tests.support.live import ACCOUNTS, CUSTOMERS, Deployment, Live, hands_on, short_waits
from tests.support.own_servers import own_postgres, own_rabbitmq
from tests.support.pace import pace
from tests.support.people import application, new_key
from tests.support.reconciling import assert_reconciled
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.waiting import eventually

CUSTOMERS_AT_ONCE = 20
BACK_SECONDS = 60.0
"""Circuits that opened meanwhile come back after pauses of up to 30 s."""
MARGIN_SECONDS = 4.0
"""Beyond the gateway's deadline, for this machine may be busy."""

Kill = Callable[[], None]


@pytest_asyncio.fixture
async def mortal(
    empty_environment: Environment, tmp_path: Path
) -> AsyncIterator[tuple[Live, dict[str, Kill]]]:
    """A stack on servers of its own, and how to kill them."""
    secrets = empty_environment.secrets
    async with own_postgres(empty_environment) as postgres, own_rabbitmq(secrets) as rabbitmq:
        environment = empty_environment.with_urls(
            database_urls=postgres.database_urls, amqp_url=rabbitmq.amqp_url
        )
        events = RecordedEvents(rabbitmq.amqp_url)
        await events.begin()
        async with (
            running_stack(environment, tmp_path, **short_waits()) as stack,
            hands_on(Deployment(stack, events)) as live,
        ):
            await rabbitmq.settled()
            yield live, {"postgres": postgres.kill, "rabbitmq": rabbitmq.kill}
            await assert_reconciled(stack)


async def test_broker_and_database_die_in_the_middle_of_onboardings(
    mortal: tuple[Live, dict[str, Kill]],
) -> None:
    live, kills = mortal
    used = signed_headers(live.partner.key, "GET", ACCOUNTS)
    assert (await live.partner.send("GET", ACCOUNTS, b"", used)).status == 200
    everything = []
    for name in ("rabbitmq", "postgres"):
        sent = {new_key(): application() for _ in range(CUSTOMERS_AT_ONCE)}
        told = await told_while(live, sent, kills[name])
        for answer, seconds in told:
            assert answer.status in {200, 503, 504}, f"{name}: {answer.status} {answer.body}"
            assert seconds < live.deadline_seconds + MARGIN_SECONDS * pace()
        await eventually(f"{name} is back", lambda: works(live), BACK_SECONDS)
        everything.append(sent)

    # The nonce was recorded before the database was killed.
    replayed = await live.partner.send("GET", ACCOUNTS, b"", used)
    assert (replayed.status, replayed.code) == (401, "nonce_reused")
    for sent in everything:
        finals = await asyncio.gather(
            *(live.final("POST", CUSTOMERS, body, key, BACK_SECONDS) for key, body in sent.items())
        )
        for final in finals:
            assert final.data["status"] == "approved"
            await live.exists_once(final.data)
    live.events.check()
    opened = {a["id"] for a in (await live.partner.get(ACCOUNTS)).data["accounts"]}
    assert len(opened) == 2 * CUSTOMERS_AT_ONCE + await others(live)


async def others(live: Live) -> int:
    """Accounts that `works` opened on its way."""
    listed = (await live.partner.get(f"{CUSTOMERS}?limit=100")).data
    return sum(
        1 for customer in listed if customer["business"]["dba"] == "Probe" and customer["accounts"]
    )


async def works(live: Live) -> bool:
    """A write and a read pass."""
    body: Any = application()
    body["business"]["dba"] = "Probe"
    written = await live.partner.post(CUSTOMERS, body)
    read = await live.partner.get(ACCOUNTS)
    told = [(answer.status, answer.body) for answer in (written, read)]
    assert [status for status, _ in told] == [200, 200], told
    return True


async def told_while(live: Live, sent: dict[str, Any], kill: Kill) -> list[tuple[Answer, float]]:
    """The answers of all, and the seconds that each took; the kill comes when the first half is under way."""
    begun = asyncio.Event()
    known = len(await live.bank.customers())

    async def caller(number: int, key: str, body: Any) -> tuple[Answer, float]:
        if number >= CUSTOMERS_AT_ONCE // 2:
            await begun.wait()
        since = time.monotonic()
        answer = await live.partner.post(CUSTOMERS, body, key)
        return answer, time.monotonic() - since

    async with asyncio.TaskGroup() as group:
        callers = [
            group.create_task(caller(number, key, body))
            for number, (key, body) in enumerate(sent.items())
        ]

        async def more() -> bool:
            return len(await live.bank.customers()) > known

        await eventually("the first are at the provider", more)
        kill()
        begun.set()
    return [task.result() for task in callers]
