"""The health of an endpoint, deliveries that are failing, and what begins at once at an open circuit breaker."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import NotFound
from tests.integration.webhooks.api.desk import Desk
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPEN = (
    "UPDATE endpoint SET open_until = clock_timestamp() + interval '10 minutes', probe_seconds = 30,"
    " unreachable_in_a_row = 5, state_since = clock_timestamp() WHERE subscription_id = $1"
)


async def health(desk: Desk, subscription_id: str) -> Any:
    return await desk.ask(table.GET_HEALTH, desk.customer, subscription_id=subscription_id)


async def attempted(desk: Desk, subscription_id: str, delivery_id: str) -> Any:
    delivery = await desk.ask(
        table.GET_DELIVERY,
        desk.customer,
        subscription_id=subscription_id,
        delivery_id=delivery_id,
    )
    assert delivery["attempts"]
    return delivery


async def test_health_says_what_failed_last_and_what_waits(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    fresh = await health(desk, subscription_id)
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)

    await eventually("an attempt", lambda: attempted(desk, subscription_id, delivery_id))
    seen = await health(desk, subscription_id)
    failing = await desk.deliveries(subscription_id, status="failing")

    assert (fresh["state"], fresh["last_error"], fresh["pending"]) == ("healthy", None, 0)
    assert fresh["since"] is not None
    assert (seen["state"], seen["since"]) == ("healthy", fresh["since"])
    assert (seen["pending"], seen["failing"]) == (1, 1)
    assert seen["last_error"]["error"] == "The connection was refused."
    assert (seen["last_success_at"], seen["next_probe_at"]) == (None, None)
    assert [delivery["delivery_id"] for delivery in failing] == [delivery_id]
    with pytest.raises(NotFound):
        await desk.ask(table.GET_HEALTH, desk.stranger, subscription_id=subscription_id)


async def test_an_open_breaker_is_told_with_its_deliveries_that_wait(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    await desk.database.execute(OPEN, uuid.UUID(subscription_id))
    await desk.record()

    seen = await health(desk, subscription_id)
    [waiting] = await desk.deliveries(subscription_id)
    await desk.set_status(subscription_id, "unavailable")
    given_up = await health(desk, subscription_id)

    assert seen["state"] == "breaker_open"
    assert seen["next_probe_at"] == waiting["next_attempt_at"] > datetime.now(UTC).isoformat()
    assert waiting["circuit_breaker"] == "waits"
    assert (seen["pending"], seen["failing"]) == (1, 0)
    assert await desk.deliveries(subscription_id, status="failing") == []
    assert (given_up["state"], given_up["next_probe_at"]) == ("unavailable", None)


@pytest.mark.parametrize("pair", [table.TEST_SUBSCRIPTION, table.RESEND_DELIVERY])
async def test_what_is_asked_for_probes_an_open_breaker_at_once_before_all_that_waits(
    desk: Desk, pair: Any
) -> None:
    subscription_id = await desk.subscribe()
    await desk.database.execute(OPEN, uuid.UUID(subscription_id))
    waiting = await desk.delivery_of(await desk.record(), subscription_id)
    asked = {"subscription_id": subscription_id}
    if pair is table.RESEND_DELIVERY:
        asked["delivery_id"] = waiting

    sent = await desk.ask(pair, desk.customer, **asked)
    probe = await eventually(
        "a probe", lambda: attempted(desk, subscription_id, sent["delivery_id"])
    )
    seen = await health(desk, subscription_id)

    assert sent["circuit_breaker"] == "probe"
    # It failed, and the circuit breaker is open for twice as long as the last time.
    assert (probe["status"], probe["circuit_breaker"]) == ("pending", "waits")
    assert seen["state"] == "breaker_open"
    assert (seen["pending"], seen["failing"]) == (2, 1)
    [other] = [
        one for one in await desk.deliveries(subscription_id) if one["delivery_id"] == waiting
    ]
    assert other["attempts_made"] == 0


async def test_without_an_open_breaker_nothing_is_said_of_one(desk: Desk) -> None:
    subscription_id = await desk.subscribe()

    sent = await desk.ask(table.TEST_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)

    assert sent["circuit_breaker"] is None
