"""What happens at the bank reaches whom it concerns, signed and byte for byte, and nobody else."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from tests.e2e.webhooks.conftest import Cast
from tests.support.api import Api
from tests.support.live import ONBOARDED, Live
from tests.support.receivers import receiver
from tests.support.subscribers import (
    CUSTOMER,
    Event,
    Subscriber,
    are_listed_as,
    listed_events,
    subscribed,
)

OF_A_DEPOSIT_AND_A_WIRE = Counter(
    {"transaction.created": 2, "wire.created": 1, "wire.submitted": 1, "wire.completed": 1}
)


async def test_onboarding_deposit_and_wire_reach_the_customer_and_its_partner_and_nobody_else(
    live: Live, cast: Cast
) -> None:
    async with (
        receiver() as endpoint,
        subscribed(cast.partner, endpoint, target="/partner") as partners,
        subscribed(cast.neighbour, endpoint, prefix=CUSTOMER, target="/neighbour") as neighbours,
        subscribed(cast.stranger, endpoint, target="/stranger") as strangers,
    ):
        onboarded = await live.onboarded(api=cast.partner)
        of_onboarding = await partners.heard_types(*ONBOARDED.elements())
        customer = await live.of_customer(onboarded["business"]["customer_id"])
        async with subscribed(customer, endpoint, prefix=CUSTOMER, target="/customer") as customers:
            await live.bank.deposit(onboarded["business"]["account_id"], Decimal("250.00"))
            await send_a_wire(customer, onboarded)
            heard = await customers.heard_types(*OF_A_DEPOSIT_AND_A_WIRE.elements())
            everything = await partners.heard_types(
                *(ONBOARDED + OF_A_DEPOSIT_AND_A_WIRE).elements()
            )
            await once_each(customers, OF_A_DEPOSIT_AND_A_WIRE.total())
        await once_each(partners, (ONBOARDED + OF_A_DEPOSIT_AND_A_WIRE).total())

        assert {event["id"] for event in heard} == {event["id"] for event in everything} - {
            event["id"] for event in of_onboarding
        }
        await are_as_listed(partners, everything)
        await are_as_listed(customers, heard)
        for others in (neighbours, strangers):
            assert await others.deliveries() == []
            assert others.requests == []


async def send_a_wire(customer: Api, onboarded: Any) -> None:
    linked = onboarded["external_bank_account"]["external_bank_account_id"]
    sent = await customer.post(
        "/customer/wire",
        {
            "sending_account_id": onboarded["business"]["account_id"],
            "external_account_id": linked,
            "amount": Decimal("75.25"),
            "purpose": "Nets and buoys",
        },
    )
    assert sent.status == 200


async def once_each(subscriber: Subscriber, count: int) -> None:
    """There are so many deliveries, each of which needed one attempt."""
    over = await subscriber.is_over(count)
    assert {(d["status"], d["attempts_made"]) for d in over} == {("succeeded", 1)}
    assert Counter(subscriber.ids) == Counter(d["event_id"] for d in over)


async def are_as_listed(subscriber: Subscriber, heard: list[Event]) -> None:
    """The events that were delivered are the last ones that `GET …/events` lists, in the very bytes."""
    bodies = {request.headers["webhook-id"]: request.body for request in subscriber.requests}
    listed: list[str] = []
    more = True
    while more:
        after = {"after": listed[-1]} if listed else {}
        page, _ = await listed_events(subscriber.api, subscriber.prefix, **after)
        listed += [event["id"] for event in page]
        more = bool(page)
    before, ids = listed[-len(heard) - 1], listed[-len(heard) :]
    _, raw = await listed_events(subscriber.api, subscriber.prefix, after=before)

    assert set(ids) == set(bodies)
    assert are_listed_as([bodies[event_id] for event_id in ids], raw)
