"""Secrets of subscriptions: made, shown to their owner, rotated; in clear nowhere else."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import pytest

from libs.contracts import webhook_operations as table
from libs.messaging.topology import COMMANDS, QUERIES
from libs.persistence.sealing import CannotOpen
from services.webhook_dispatcher.signing_secrets import open_secret
from tests.integration.webhooks.api.desk import Desk
from tests.support.keys import storage_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def secret_of(desk: Desk, subscription_id: str) -> Any:
    return await desk.ask(table.GET_SECRET, desk.customer, subscription_id=subscription_id)


async def rotated(desk: Desk, subscription_id: str) -> Any:
    return await desk.ask(table.ROTATE_SECRET, desk.customer, subscription_id=subscription_id)


async def test_a_secret_is_thirty_two_bytes_and_each_subscription_has_its_own(desk: Desk) -> None:
    first = await secret_of(desk, await desk.subscribe())
    second = await secret_of(desk, await desk.subscribe())

    assert len(base64.b64decode(first["secret"].removeprefix("whsec_"), validate=True)) == 32
    assert first["secret"].startswith("whsec_")
    assert first["secret"] != second["secret"]
    assert first["previous_secret_expires_at"] is None


async def test_after_a_rotation_the_previous_secret_signs_for_a_day(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    before = await secret_of(desk, subscription_id)

    after = await rotated(desk, subscription_id)

    assert after == await secret_of(desk, subscription_id)
    assert after["secret"] != before["secret"]
    expires_at = datetime.fromisoformat(after["previous_secret_expires_at"])
    assert abs(expires_at - datetime.now(UTC) - timedelta(hours=24)) < timedelta(minutes=1)
    assert await stored(desk, subscription_id) == (after["secret"], before["secret"])


async def test_a_second_rotation_within_the_overlap_drops_the_oldest(desk: Desk) -> None:
    subscription_id = await desk.subscribe()

    first = await rotated(desk, subscription_id)
    second = await rotated(desk, subscription_id)

    assert await stored(desk, subscription_id) == (second["secret"], first["secret"])


async def test_a_previous_secret_that_has_expired_is_not_told_of(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    await rotated(desk, subscription_id)
    await desk.database.execute(
        "UPDATE subscription SET previous_secret_expires_at = now() WHERE id = $1",
        uuid.UUID(subscription_id),
    )

    assert (await secret_of(desk, subscription_id))["previous_secret_expires_at"] is None


async def test_a_sealed_secret_opens_in_no_other_row(desk: Desk) -> None:
    first, second = uuid.UUID(await desk.subscribe()), uuid.UUID(await desk.subscribe())
    keyring = storage_of(desk.stack.environment.secrets, "webhook_dispatcher")
    (row,) = await desk.rows("SELECT secret FROM subscription WHERE id = $1", first)

    assert open_secret(keyring, first, row["secret"])
    with pytest.raises(CannotOpen):
        open_secret(keyring, second, row["secret"])


async def test_a_secret_is_in_clear_neither_stored_nor_queued_nor_logged(desk: Desk) -> None:
    seen: list[str] = []
    connection = await aio_pika.connect(desk.stack.environment.amqp_url)
    channel = await connection.channel()
    queue = await channel.declare_queue(exclusive=True)
    for row in table.OPERATIONS:
        if not row.is_query:
            await queue.bind(COMMANDS, routing_key=row.name)
    await queue.bind(QUERIES, routing_key="webhook_dispatcher")

    async def collect(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        seen.append(message.body.decode())

    await queue.consume(collect, no_ack=True)
    # What answers look like on their way: the reply is sealed until the caller opens it.
    sealed: list[str] = []
    opened = desk.service_client.open_result

    def tapped(operation: Any, reply: Any) -> Any:
        sealed.append(bytes(reply.result).decode())
        return opened(operation, reply)

    desk.service_client.open_result = tapped  # type: ignore[method-assign]

    subscription_id = await desk.subscribe()
    secrets = [(await secret_of(desk, subscription_id))["secret"]]
    secrets.append((await rotated(desk, subscription_id))["secret"])

    await connection.close()
    tables = await desk.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )
    rows = [
        str([v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in found.values()])
        for name in tables
        for found in await desk.rows(f'SELECT * FROM "{name["table_name"]}"')
    ]
    everywhere = "\n".join([*seen, *sealed, *rows, desk.stack.log("webhook_dispatcher")])
    assert subscription_id in everywhere
    for secret in secrets:
        assert secret not in everywhere
        assert secret.removeprefix("whsec_") not in everywhere


async def stored(desk: Desk, subscription_id: str) -> tuple[str, str]:
    """The secret and the one before, as the engine opens them."""
    keyring = storage_of(desk.stack.environment.secrets, "webhook_dispatcher")
    (row,) = await desk.rows(
        "SELECT id, secret, previous_secret FROM subscription WHERE id = $1",
        uuid.UUID(subscription_id),
    )
    return (
        open_secret(keyring, row["id"], row["secret"]),
        open_secret(keyring, row["id"], row["previous_secret"]),
    )
