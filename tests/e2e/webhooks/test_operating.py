"""Operators find what fails, send it again, and stop deliveries; viewers only look."""

from __future__ import annotations

from typing import Any

import pytest

from libs.contracts.principal import Role
from tests.e2e.webhooks.conftest import Cast
from tests.support.api import Api, operator_interface
from tests.support.event_bus import EventBus, made_up_events
from tests.support.live import Live
from tests.support.operators import new_operator
from tests.support.receivers import receiver, replies
from tests.support.subscribers import CUSTOMER, subscribed
from tests.support.waiting import eventually

REASON = "The customer called"


async def operator(live: Live, role: str) -> Api:
    key, url = await new_operator(live.stack.environment, role), live.stack.operator_url
    return Api(live.session, url, operator_interface(), key)


@pytest.mark.usefixtures("retries_wait")
async def test_an_operator_finds_what_fails_and_sends_it_again_and_a_viewer_only_looks(
    live: Live, cast: Cast, bus: EventBus
) -> None:
    (event,) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
    stack, viewer = live.stack, await operator(live, Role.VIEWER)
    async with (
        receiver(replies(500)) as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER, target="/mine") as mine,
    ):
        subscription = f"/operator/subscriptions/{mine.subscription_id}"
        await bus.publish([event])

        async def failing() -> Any:
            found = (await stack.command("webhooks", "failing"))["subscriptions"]
            return [one for one in found if one["subscription_id"] == mine.subscription_id]

        [found] = await eventually("the subscription is failing", failing)
        shown = await stack.command("webhooks", "show", mine.subscription_id)
        [delivery] = shown["failing"]
        resend = f"{subscription}/deliveries/{delivery['delivery_id']}/resend"
        refused = [
            await api.post(path, {"reason": REASON})
            for api in (viewer, cast.partner)
            for path in (resend, f"{subscription}/disable")
        ]
        sent = await stack.command(
            "webhooks", "resend", mine.subscription_id, delivery["delivery_id"], "--reason", REASON
        )
        await mine.heard(2)
        read = (await viewer.get(f"/operator/events/{event.event_id}")).data
        health = (await cast.customer.get(f"{mine.one}/health")).data

    assert found["tenant"] == cast.partner.key.tenant
    assert shown["subscription"]["health"]["last_error"]["response_status"] == 500
    assert [answer.status for answer in refused] == [403, 403, 404, 404]
    assert [answer.code for answer in refused[:2]] == ["insufficient_role"] * 2
    ids = {one["delivery_id"] for one in read["deliveries"]}
    assert {delivery["delivery_id"], sent["delivery"]["delivery_id"]} <= ids
    assert health["failing"] >= 1
