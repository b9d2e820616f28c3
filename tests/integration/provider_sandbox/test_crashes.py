from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.integration.provider_sandbox.bank import Bank, Reply, business, new_key
from tests.integration.provider_sandbox.conftest import SANDBOX
from tests.support.infrastructure import Environment
from tests.support.own_servers import own_postgres
from tests.support.pace import pace
from tests.support.stack import Stack

CLIENTS = 12
TURNS = 6
RETRY_SECONDS = 30.0


def bank_of(stack: Stack, session: aiohttp.ClientSession) -> Bank:
    return Bank(session, stack.sandbox_url, stack.environment.secrets.provider_tokens)


async def create_until_known(bank: Bank, customer_id: str, key: str) -> Reply:
    """What an adapter does: the same key again until there is an answer that is one."""
    deadline = time.monotonic() + RETRY_SECONDS * pace()
    while True:
        with contextlib.suppress(aiohttp.ClientError):
            reply = await bank.write("/identity/customers", business(customer_id), key=key)
            if reply.status < 500:
                return reply
        assert time.monotonic() < deadline, "the bank never answered"
        await asyncio.sleep(0.05)


async def assert_one_effect_each(bank: Bank, replies: dict[str, Reply]) -> None:
    rows = await bank.truth("customers")
    assert sorted(row["customer_id"] for row in rows) == sorted(replies)
    events: list[dict[str, Any]] = []
    while page := (await bank.get("/identity/events", after=len(events), limit=500)).body["events"]:
        events += page
    assert [event["position"] for event in events] == list(range(1, len(replies) + 1))
    told = {event["customer_id"]: event["identity_id"] for event in events}
    assert told == {key: reply.body["identity_id"] for key, reply in replies.items()}


async def test_a_crash_leaves_a_record_with_its_key_and_its_event_or_nothing(
    own_sandbox: Stack,
) -> None:
    customer_id, key = str(uuid.uuid4()), new_key()
    process = own_sandbox.services["provider_sandbox"]
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)

        async def crashing_write() -> None:
            with pytest.raises(aiohttp.ClientError):
                await bank.write("/identity/customers", business(customer_id), key=key)
            await process.ended()

        async def counted_and_known() -> tuple[int, int]:
            known = await bank.get(f"/identity/operations/{key}")
            return len(await bank.truth("customers")), known.status

        try:
            await process.start(BANKSIDE_CRASH_AT="sandbox.uncommitted")
            await crashing_write()
            await process.start(BANKSIDE_CRASH_AT="sandbox.committed")
            uncommitted = await counted_and_known()
            await crashing_write()
            await process.start()
            committed = await counted_and_known()
            reply = await create_until_known(bank, customer_id, key)

            assert uncommitted == (0, 404)
            assert committed == (1, 200)
            assert reply.replayed
            await assert_one_effect_each(bank, {customer_id: reply})
            assert await process.stop() == 0, "it ends cleanly when it is told to"
        finally:
            await own_sandbox.stop()


async def test_killed_under_load_it_keeps_what_it_answered_and_doubles_nothing(
    own_sandbox: Stack,
) -> None:
    replies: dict[str, Reply] = {}
    process = own_sandbox.services["provider_sandbox"]

    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)

        async def client() -> None:
            for _ in range(TURNS):
                customer_id = str(uuid.uuid4())
                replies[customer_id] = await create_until_known(bank, customer_id, new_key())

        await own_sandbox.start()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CLIENTS):
                    group.create_task(client())
                for share in (0.25, 0.5):
                    while len(replies) < share * CLIENTS * TURNS:
                        await asyncio.sleep(0.005)
                    await process.kill()
                    await process.start()

            assert {reply.status for reply in replies.values()} == {200}
            await assert_one_effect_each(bank, replies)
        finally:
            await own_sandbox.stop()


async def test_the_database_killed_under_load_loses_and_doubles_nothing(
    environment: Environment, tmp_path: Path
) -> None:
    replies: dict[str, Reply] = {}
    async with own_postgres(environment) as postgres, aiohttp.ClientSession() as session:
        own = Environment(
            "bankside", postgres.database_urls, environment.amqp_url, environment.secrets
        )
        stack = Stack(own, tmp_path, [SANDBOX])
        bank = bank_of(stack, session)

        async def client() -> None:
            for _ in range(TURNS):
                customer_id = str(uuid.uuid4())
                replies[customer_id] = await create_until_known(bank, customer_id, new_key())

        await stack.start()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CLIENTS):
                    group.create_task(client())
                while len(replies) < CLIENTS * TURNS / 3:
                    await asyncio.sleep(0.005)
                postgres.kill()

            assert {reply.status for reply in replies.values()} == {200}
            await assert_one_effect_each(bank, replies)
        finally:
            await stack.stop()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"BANKSIDE_PROFILE": "production"}, "refused in production"),
        ({"BANKSIDE_SANDBOX_HOST": "8.8.8.8"}, "loopback or a private network"),
        ({"BANKSIDE_SANDBOX_PAYMENTS_CORE_TOKEN": "short"}, "BANKSIDE_SANDBOX_PAYMENTS_CORE_TOKEN"),
        (
            {
                "BANKSIDE_SANDBOX_PAYMENTS_CORE_TOKEN": "the same for both",
                "BANKSIDE_SANDBOX_LEDGER_READ_FINANCIAL_TOKEN": "the same for both",
            },
            "BANKSIDE_PAYMENTS_CORE_TOKEN and BANKSIDE_LEDGER_READ_FINANCIAL_TOKEN: they must differ",
        ),
    ],
    ids=["production", "public", "token", "shared token"],
)
async def test_it_does_not_start_where_it_must_not(
    environment: Environment, tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    process = Stack(environment, tmp_path, [SANDBOX]).services["provider_sandbox"]

    process.spawn(**settings)

    assert await process.ended() == 78
    assert sentence in process.log
    assert "Traceback" not in process.log
