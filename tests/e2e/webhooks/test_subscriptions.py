"""A subscription's life seen from its endpoint: disabled, enabled, deleted; and what others may do with it."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.e2e.webhooks.conftest import Cast
from tests.support.event_bus import EventBus, made_up_events
from tests.support.receivers import receiver
from tests.support.subscribers import CUSTOMER, PARTNER, SUBSCRIPTIONS, subscribed


async def test_a_disabled_one_gets_later_what_happened_and_a_deleted_one_nothing(
    bus: EventBus, cast: Cast
) -> None:
    tenant = cast.partner.key.tenant
    first, meanwhile, after, last = made_up_events(4, tenant, cast.customer_id)
    async with (
        receiver() as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER, target="/mine") as mine,
        subscribed(cast.partner, endpoint, "person.updated", target="/other") as other,
    ):
        await bus.publish([first])
        await mine.is_over(1)
        disabled = await mine.change(status="disabled")
        refused = await cast.customer.call("POST", f"{mine.one}/test")
        await bus.publish([meanwhile])
        await other.is_over(2)
        held = await mine.deliveries(status="held")
        before = list(mine.ids)
        enabled = await mine.change(status="active")
        await bus.publish([after])
        await mine.is_over(3)
        deleted = await mine.delete()
        await bus.publish([last])
        await other.is_over(4)

        assert (disabled["status"], enabled["status"]) == ("disabled", "active")
        assert refused.code == "invalid_state"
        assert [d["event_id"] for d in held] == [meanwhile.event_id]
        assert before == [first.event_id]
        assert deleted.body["data"] is None
        assert (await cast.customer.get(mine.one)).code == "not_found"
        assert (await cast.customer.get(f"{CUSTOMER}{SUBSCRIPTIONS}")).data == []
        assert sorted(mine.ids) == sorted(e.event_id for e in (first, meanwhile, after))
        assert sorted(other.ids) == sorted(e.event_id for e in (first, meanwhile, after, last))


async def test_another_s_subscription_is_neither_seen_nor_replayed(
    bus: EventBus, cast: Cast
) -> None:
    (event,) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
    async with (
        receiver() as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER) as mine,
    ):
        await bus.publish([event])
        (delivery,) = await mine.is_over(1)
        below = f"{SUBSCRIPTIONS}/{mine.subscription_id}"
        answers = [
            await api.call(method, f"{prefix}{path}", body)
            # A partner has its customers' events, but not their subscriptions.
            for api, prefix in (
                (cast.neighbour, CUSTOMER),
                (cast.partner, PARTNER),
                (cast.stranger, PARTNER),
            )
            for method, path, body in (
                ("GET", below, None),
                ("PATCH", below, {"status": "disabled"}),
                ("GET", f"{below}/secret", None),
                ("POST", f"{below}/secret/rotate", None),
                ("POST", f"{below}/test", None),
                ("GET", f"{below}/deliveries", None),
                ("GET", f"{below}/deliveries/{delivery['delivery_id']}", None),
                ("POST", f"{below}/deliveries/{delivery['delivery_id']}/resend", None),
                ("POST", f"{below}/recover", {"since": datetime.now(UTC).isoformat()}),
                ("DELETE", below, None),
            )
        ]

        assert {(answer.status, answer.code) for answer in answers} == {(404, "not_found")}
        for api, prefix in ((cast.neighbour, CUSTOMER), (cast.stranger, PARTNER)):
            assert (await api.get(f"{prefix}/events/{event.event_id}")).code == "not_found"
            after = await api.get(f"{prefix}/events?after={event.event_id}")
            assert after.code == "not_found"
        assert await mine.deliveries() == [delivery]
        assert mine.ids == [event.event_id]
        assert mine.verified(mine.requests[0])["id"] == event.event_id
