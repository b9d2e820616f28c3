"""What the alerts about deliveries go by."""

from __future__ import annotations

import base64
import os
from dataclasses import replace

from libs.persistence.sealing import Keyring
from services.webhook_dispatcher.metrics import ATTEMPTS, OLDEST_DUE_SECONDS, measure
from services.webhook_dispatcher.ports import AttemptOutcome
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.metrics import value_of
from tests.support.waiting import eventually


async def test_a_delivery_whose_secret_cannot_be_opened_counts_as_not_tried(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    another_ring = Keyring(f"new:{base64.b64encode(os.urandom(32)).decode()}")
    not_tried = ATTEMPTS.labels(AttemptOutcome.NOT_TRIED.value)
    before = value_of(not_tried)

    async def is_counted() -> bool:
        return value_of(not_tried) > before

    async with replace(rig, keyring=another_ring).engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("an attempt that is not made", is_counted)

    [delivery] = await rig.deliveries(subscription)
    assert (delivery.state, delivery.attempts_made) == ("pending", 0)
    assert not rig.receiver.of("/a")


async def test_a_due_delivery_grows_old_unless_its_subscription_gets_none(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    await rig.change(
        "INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, due_at, created_at)"
        " VALUES (gen_random_uuid(), :id, 't_1', current_date, gen_random_uuid(), 'person.updated', 'pending',"
        " now() - interval '1 hour', now() - interval '1 hour')",
        id=subscription,
    )

    await measure(rig.database, rig.clock)
    of_active = value_of(OLDEST_DUE_SECONDS)
    await rig.change("UPDATE subscription SET status = 'disabled' WHERE id = :id", id=subscription)
    await measure(rig.database, rig.clock)

    assert of_active >= 3_500
    assert value_of(OLDEST_DUE_SECONDS) == 0, "it is about to be held"
