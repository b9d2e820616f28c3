"""`bankside dead`, on a real broker."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import msgspec
import pytest_asyncio
from aio_pika import Message
from uuid_utils import uuid7

from libs.contracts.principal import Family, Principal
from libs.messaging.dead_letters import open_dead_letters
from libs.messaging.envelope import Envelope, encode
from libs.messaging.topology import declare_events, declare_service, events_queue
from tests.support.command_line import Finished, run_bankside
from tests.support.infrastructure import Environment
from tests.support.pace import pace

QUEUE = "onboarding.commands"


@pytest_asyncio.fixture
async def broker(empty_environment: Environment) -> AsyncIterator[str]:
    """The URL of a broker on which a command, and something that is none, have died."""
    envelope = Envelope(
        id="command-1",
        message_id=str(uuid7()),
        request_id="request",
        operation="onboarding.update_business",
        principal=Principal("tenant", "Tenant", Family.PARTNER, "sub_test"),
        deadline=0.0,
        body=msgspec.Raw(b'{"customer_id":"c-1"}'),
    )
    connection = await aio_pika.connect(empty_environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
        for body, message_id in ((encode(envelope), envelope.message_id), (b"\xff", "unreadable")):
            await channel.default_exchange.publish(Message(body, message_id=message_id), QUEUE)
        queue = await channel.get_queue(QUEUE)
        for _ in range(2):
            await (await queue.get(timeout=5)).reject(requeue=False)
        async with (
            open_dead_letters(empty_environment.amqp_url) as letters,
            asyncio.timeout(10 * pace()),
        ):
            while await letters.count(f"{QUEUE}.dead") < 2:
                await asyncio.sleep(0.02)
    yield empty_environment.amqp_url


async def dead(broker: str, *arguments: str) -> Finished:
    return await run_bankside(("dead", *arguments), os.environ | {"BANKSIDE_AMQP_URL": broker})


async def letters_of(broker: str) -> list[dict[str, Any]]:
    status, out, _ = await dead(broker, "list", "--json")
    assert status == 0
    listed: list[dict[str, Any]] = json.loads(out)["queues"][0]["letters"]
    return listed


async def test_letters_are_listed_and_shown(broker: str) -> None:
    command, unreadable = await letters_of(broker)
    _, table, _ = await dead(broker, "list")
    _, shown, _ = await dead(broker, "show", "command-1")
    _, document, _ = await dead(broker, "show", unreadable["id"], "--json")

    assert command["operation"] == "onboarding.update_business"
    assert command["command_id"] == "command-1"
    assert command["reason"] == "rejected"
    assert unreadable["operation"] is None
    assert "onboarding.update_business" in table
    assert "cannot be read" in table
    assert '"customer_id": "c-1"' in shown
    assert json.loads(document)["letters"][0]["body"] == "\N{REPLACEMENT CHARACTER}"


async def test_an_event_is_listed_by_its_type_and_the_time_within_its_id(broker: str) -> None:
    event_id, queue_name = f"evt_{uuid7()}", events_queue("webhook_dispatcher")
    connection = await aio_pika.connect(broker)
    async with connection, connection.channel() as channel:
        await declare_events(channel, "webhook_dispatcher")
        await channel.default_exchange.publish(
            Message(b"{}", message_id=event_id, type="person.updated"), queue_name
        )
        queue = await channel.get_queue(queue_name)
        await (await queue.get(timeout=5)).reject(requeue=False)
        async with open_dead_letters(broker) as letters, asyncio.timeout(10 * pace()):
            while not await letters.count(f"{queue_name}.dead"):
                await asyncio.sleep(0.02)

    _, document, _ = await dead(broker, "list", "--json", "--queue", queue_name)
    _, table, _ = await dead(broker, "list", "--queue", queue_name)

    (letter,) = json.loads(document)["queues"][0]["letters"]
    assert (letter["id"], letter["event_type"]) == (event_id, "person.updated")
    assert letter["operation"] is None
    sent_at = datetime.fromisoformat(letter["sent_at"])
    assert timedelta() <= datetime.now(UTC) - sent_at < timedelta(minutes=1)
    assert "person.updated" in table
    assert "cannot be read" not in table


async def test_replaying_takes_a_yes_and_what_was_named(broker: str) -> None:
    nobody, _, question = await dead(broker, "replay", "command-1")
    unknown, _, mistake = await dead(broker, "replay", "command-2", "--yes")
    status, out, _ = await dead(broker, "replay", "command-1", "--yes", "--json")

    assert (nobody, unknown, status) == (2, 2, 0)
    assert "--yes" in question
    assert "command-2" in mistake
    assert [item["command_id"] for item in json.loads(out)["replayed"]] == ["command-1"]
    assert [item["id"] for item in await letters_of(broker)] == ["unreadable"]
    async with open_dead_letters(broker) as letters:
        assert await letters.count(QUEUE) == 1
