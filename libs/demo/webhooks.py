"""The chapters of the story about webhooks: a receiver gets the events of a wire while it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.client.webhook_endpoint import Delivery, Endpoint, listening
from libs.client.webhooks import Webhooks
from libs.contracts.principal import Family
from libs.contracts.webhooks import CreateSubscription, DeleteSubscription, GetSecret
from libs.demo.scene import Scene, expect
from libs.demo.wires import send_a_wire
from libs.signing.webhook import key_of

DELIVERED_SECONDS = 30.0
EXPECTED = ("wire.created", "wire.submitted", "wire.completed")


async def receive_events_of_a_wire(scene: Scene) -> None:
    """Subscribe a receiver of our own, send the wire, show what was delivered, and leave no subscription."""
    deliveries: list[Delivery] = []
    all_there = asyncio.Event()

    def report(delivery: Delivery) -> None:
        deliveries.append(delivery)
        if set(EXPECTED) <= {known.type for known in deliveries}:
            all_there.set()

    endpoint = Endpoint(scene.session, None, report)
    async with listening(endpoint, 0) as url:
        hooks = Webhooks(scene.customer, Family.CUSTOMER)
        async with _subscribed(scene, hooks, url) as subscription_id:
            secret = await scene.call(hooks.get_secret, GetSecret(subscription_id=subscription_id))
            endpoint.key.set_result(key_of(secret.data.secret))
            await send_a_wire(scene)
            await _show_deliveries(scene, deliveries, all_there)


@asynccontextmanager
async def _subscribed(scene: Scene, hooks: Webhooks, url: str) -> AsyncIterator[str]:
    """The id of a subscription, for the body: also a story that breaks leaves none."""
    scene.title("The business subscribes to its wires")

    made = await scene.call(
        hooks.create_subscription,
        CreateSubscription(event_types="wire", callback_url=url, description="make demo"),
    )
    subscription_id = made.data.subscription_id
    try:
        scene.show("subscription", subscription_id)
        scene.show("receiver", url)
        yield subscription_id
    finally:
        await scene.call(
            hooks.delete_subscription, DeleteSubscription(subscription_id=subscription_id)
        )


async def _show_deliveries(
    scene: Scene, deliveries: list[Delivery], all_there: asyncio.Event
) -> None:
    scene.title("Every step was delivered, signed")

    try:
        async with asyncio.timeout(DELIVERED_SECONDS):
            await all_there.wait()
    except TimeoutError:
        pass  # what is missing breaks the story below

    for delivery in deliveries:
        verified = "verified" if delivery.refusal is None else f"refused: {delivery.refusal}"
        scene.show(delivery.type, f"{delivery.event_id}  {verified}")
    missing = set(EXPECTED) - {delivery.type for delivery in deliveries}
    expect(not missing, f"Nothing was delivered of {', '.join(sorted(missing))}.")
    refused = [delivery for delivery in deliveries if delivery.refusal is not None]
    expect(
        not refused, f"{len(refused)} deliveries were not signed with the subscription's secret."
    )
