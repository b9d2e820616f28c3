"""`bankside dead`, on a real broker."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import asyncpg
import msgspec
import pytest
import pytest_asyncio
from aio_pika import Message
from aio_pika.abc import HeadersType
from uuid_utils import uuid7

from libs.cli import dead
from libs.contracts.principal import Family, Principal
from libs.messaging import dead_letters
from libs.messaging.dead_letters import open_dead_letters
from libs.messaging.envelope import Envelope, encode
from libs.messaging.topology import declare_events, declare_service, events_queue
from tests.support.command_line import Finished, run_bankside
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.stack import Stack
from tests.support.waiting import eventually

QUEUE = "onboarding.commands"
COMMAND_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
FORGED_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d02"


@dataclass(frozen=True)
class Site:
    """A broker on which a command, a forged one and something that is none have died, and onboarding's database."""

    environment: Environment
    env: Mapping[str, str]

    @property
    def broker(self) -> str:
        """The administrator's URL."""
        return self.environment.amqp_url

    async def dead(self, *arguments: str) -> Finished:
        return await run_bankside(("dead", *arguments), os.environ | dict(self.env))

    async def seen(self, *arguments: str) -> str:
        """What is printed once the letters are back that an earlier look had taken: that takes the broker a moment."""
        printed = ""

        async def are_back() -> bool:
            nonlocal printed
            status, printed, _ = await self.dead(*arguments)
            return status == 0 and f"{QUEUE}.dead: none" not in printed

        await eventually("the letters are back", are_back)
        return printed

    async def letters(self) -> list[dict[str, Any]]:
        status, out, _ = await self.dead("list", "--json", "--queue", QUEUE)
        assert status == 0
        listed: list[dict[str, Any]] = json.loads(out)["queues"][0]["letters"]
        return listed

    async def recorded(self, service: str, statement: str) -> list[Any]:
        connection = await asyncpg.connect(self.environment.database_urls[service])
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()


def a_command(command_id: str, sender: str) -> Message:
    envelope = Envelope(
        id=command_id,
        message_id=str(uuid7()),
        request_id="request",
        operation="onboarding.update_business",
        principal=Principal("tenant", "Tenant", Family.PARTNER, "sub_test"),
        deadline=0.0,
        body=msgspec.Raw(b'{"customer_id":"c-1"}'),
    )
    return Message(encode(envelope), message_id=envelope.message_id, user_id=sender)


async def die(site: Site, queue_name: str, *messages: Message) -> None:
    connection = await aio_pika.connect(site.broker)
    async with connection, connection.channel() as channel:
        for message in messages:
            await channel.default_exchange.publish(message, queue_name)
        queue = await channel.get_queue(queue_name)
        for _ in messages:
            await (await queue.get(timeout=5)).reject(requeue=False)
        async with open_dead_letters(site.broker) as letters, asyncio.timeout(10 * pace()):
            while await letters.count(f"{queue_name}.dead") < len(messages):
                await asyncio.sleep(0.02)


@pytest_asyncio.fixture
async def site(fresh_environment: Environment, tmp_path: Path) -> Site:
    made = Site(fresh_environment, Stack(fresh_environment, tmp_path).env)
    connection = await aio_pika.connect(made.broker)
    async with connection, connection.channel() as channel:
        for service in ("onboarding", "payments", "webhook_dispatcher"):
            await declare_service(channel, service)
        await declare_events(channel, "webhook_dispatcher")
    await die(
        made,
        QUEUE,
        a_command(COMMAND_ID, "gateway"),
        a_command(FORGED_ID, "ledger_read"),
        Message(b"\xff", message_id="unreadable", user_id="gateway"),
    )
    return made


async def test_letters_are_listed_and_shown(site: Site) -> None:
    command, forged, unreadable = await site.letters()
    table = await site.seen("list")
    shown = await site.seen("show", COMMAND_ID)
    document = await site.seen("show", unreadable["id"], "--json")

    assert command["operation"] == "onboarding.update_business"
    assert command["command_id"] == COMMAND_ID
    assert command["reason"] == "rejected"
    assert (command["sender"], forged["sender"]) == ("gateway", "ledger_read")
    assert unreadable["operation"] is None
    assert "onboarding.update_business" in table
    assert "cannot be read" in table
    assert '"customer_id": "c-1"' in shown
    assert json.loads(document)["letters"][0]["body"] == "\N{REPLACEMENT CHARACTER}"


async def test_a_service_sees_its_own_letters_alone(site: Site) -> None:
    env = {k: v for k, v in site.env.items() if not k.endswith("_AMQP_URL")}
    own = "BANKSIDE_PAYMENTS_AMQP_URL"

    payments = Site(site.environment, env | {own: site.env[own]})
    status, out, _ = await payments.dead("list", "--json")

    assert status == 0
    assert [one["queue"] for one in json.loads(out)["queues"]] == ["payments.commands.dead"]


async def test_replaying_takes_a_yes_and_what_was_named(site: Site) -> None:
    nobody, _, question = await site.dead("replay", COMMAND_ID)
    unknown, _, mistake = await site.dead("replay", "command-2", "--yes")
    status, out, _ = await site.dead("replay", COMMAND_ID, "--yes", "--json")

    assert (nobody, unknown, status) == (2, 2, 0)
    assert "--yes" in question
    assert "command-2" in mistake
    assert [item["command_id"] for item in json.loads(out)["replayed"]] == [COMMAND_ID]
    assert [item["id"] for item in await site.letters()][1:] == ["unreadable"]
    inbox = await site.recorded("onboarding", "SELECT command_id FROM inbox")
    assert [str(command_id) for command_id in inbox] == [COMMAND_ID]
    (entry,) = await site.recorded("onboarding", "SELECT entry FROM audit")
    assert json.loads(entry)["action"] == "dead.replay"
    assert json.loads(entry)["command_id"] == COMMAND_ID


async def test_what_no_allowed_sender_sent_and_what_cannot_be_read_stays(site: Site) -> None:
    status, out, _ = await site.dead("replay", "--all", "--yes", "--json")

    left = {item["id"]: item["because"] for item in json.loads(out)["left"]}
    assert status == 1
    assert "this release cannot read it" in left["unreadable"]
    assert any("ledger_read may not send" in because for because in left.values())
    assert [item["command_id"] for item in await site.letters()] == [FORGED_ID, None]
    inbox = await site.recorded("onboarding", "SELECT command_id FROM inbox")
    assert [str(command_id) for command_id in inbox] == [COMMAND_ID]


async def test_more_letters_than_are_looked_at_once_are_replayed(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [str(uuid4()) for _ in range(4)]
    await die(site, QUEUE, *(a_command(command_id, "gateway") for command_id in more))
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    for module in (dead, dead_letters):
        monkeypatch.setattr(module, "MAX_LOOKED_AT", 3)

    status = await asyncio.to_thread(
        dead.replay, all_letters=True, queue=QUEUE, yes=True, json=True
    )

    done = json.loads(capsys.readouterr().out)
    assert status == 1
    assert {item["command_id"] for item in done["replayed"]} == {COMMAND_ID, *more}
    assert len(done["left"]) == 2


def an_event(sender: str, body: bytes = b"{}") -> Message:
    headers: HeadersType = {"tenant": "t", "customer_id": "c", "resource_id": "r", "sequence": 1}
    event_id = f"evt_{uuid7()}"
    return Message(
        body, message_id=event_id, type="person.updated", user_id=sender, headers=headers
    )


async def test_an_event_is_listed_by_its_type_and_the_time_within_its_id_and_recorded_anew(
    site: Site,
) -> None:
    queue = events_queue("webhook_dispatcher")
    good, forged = an_event("onboarding"), an_event("payments")
    await die(site, queue, good, forged)

    _, document, _ = await site.dead("list", "--json", "--queue", queue)
    _, table, _ = await site.dead("list", "--queue", queue)
    status, out, _ = await site.dead("replay", "--all", "--queue", queue, "--yes", "--json")

    letter, _ = json.loads(document)["queues"][0]["letters"]
    assert (letter["id"], letter["event_type"]) == (good.message_id, "person.updated")
    assert letter["operation"] is None
    sent_at = datetime.fromisoformat(letter["sent_at"])
    assert timedelta() <= datetime.now(UTC) - sent_at < timedelta(minutes=1)
    assert "person.updated" in table
    assert "cannot be read" not in table
    replayed = json.loads(out)
    assert status == 1
    assert [item["id"] for item in replayed["replayed"]] == [good.message_id]
    assert [item["id"] for item in replayed["left"]] == [forged.message_id]
    recorded = await site.recorded("webhook_dispatcher", "SELECT id FROM event")
    assert [f"evt_{event_id}" for event_id in recorded] == [good.message_id]
