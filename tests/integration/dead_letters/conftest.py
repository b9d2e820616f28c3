"""Onboarding has three dead letters."""

from __future__ import annotations

import aio_pika
import pytest_asyncio
from aio_pika import Message

from libs.messaging.topology import declare_events
from tests.integration.dead_letters.site import (
    COMMAND_ID,
    FORGED_ID,
    QUEUE,
    Site,
    a_command,
    die,
    handlers,
)
from tests.support.answered_operators import AnsweredOperators
from tests.support.infrastructure import Environment
from tests.support.queues import declare_service


@pytest_asyncio.fixture
async def site(fresh_environment: Environment) -> Site:
    operator = AnsweredOperators(fresh_environment, handlers(fresh_environment))
    made = Site(fresh_environment, operator)
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
