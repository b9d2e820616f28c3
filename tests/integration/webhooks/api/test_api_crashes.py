"""The dispatcher is killed in the middle of a command: somebody goes on, and it has one effect."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from libs.contracts import webhook_operations as table
from libs.contracts.errors import NotFound
from libs.contracts.webhook_operations import FamilyPair
from services.webhook_dispatcher.signing_secrets import open_secret
from tests.integration.webhooks.api.desk import NOWHERE, Desk
from tests.support.keys import storage_of
from tests.support.pace import pace
from tests.support.stack import READY_SECONDS, STOP_SECONDS
from tests.support.waiting import eventually
from tests.support.waits import leases_end

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER_SECONDS = 25.0
"""From the start of the life that does not end."""
CHANGING, CHANGED = "webhook_dispatcher.changing", "webhook_dispatcher.changed"


@pytest_asyncio.fixture(loop_scope="session")
async def dying(desk: Desk) -> AsyncIterator[Desk]:
    """A desk whose dispatcher is there again afterwards. Its callers wait for as long as three lives of the dispatcher
    may take to begin and to end.
    """
    desk.wait_seconds = 3 * (READY_SECONDS + STOP_SECONDS)
    yield desk
    service = desk.stack.services["webhook_dispatcher"]
    if not service.is_running:
        await service.start()


async def killed_at(desk: Desk, points: Sequence[str], pair: FamilyPair, **values: Any) -> Any:
    """The answer to a command of which one drive after another ends in a crash, at each of these points."""
    service = desk.stack.services["webhook_dispatcher"]
    asking: asyncio.Task[Any] | None = None
    for point in points:
        await service.stop()
        service.spawn(BANKSIDE_CRASH_AT=point)
        if asking is None:
            await service.ready()
            asking = asyncio.create_task(desk.ask(pair, desk.customer, **values))
        await service.ended()
        await leases_end(desk.stack.environment, "webhook_dispatcher")
    await service.start()
    assert asking is not None
    async with asyncio.timeout(ANSWER_SECONDS * pace()):
        return await asking


async def test_a_subscription_is_made_once(dying: Desk) -> None:
    points = (CHANGING, CHANGED)

    made = await killed_at(
        dying, points, table.CREATE_SUBSCRIPTION, event_types="*", callback_url=NOWHERE
    )

    assert await dying.ask(table.LIST_SUBSCRIPTIONS, dying.customer) == [made]


async def test_a_secret_is_rotated_once_and_still_the_answer(dying: Desk) -> None:
    subscription_id = await dying.subscribe()
    asked = {"subscription_id": subscription_id}
    before = await dying.ask(table.GET_SECRET, dying.customer, **asked)

    after = await killed_at(dying, (CHANGED,), table.ROTATE_SECRET, **asked)

    assert after == await dying.ask(table.GET_SECRET, dying.customer, **asked)
    (row,) = await dying.rows(
        "SELECT id, previous_secret FROM subscription WHERE id = $1", uuid.UUID(subscription_id)
    )
    keyring = storage_of(dying.stack.environment.secrets, "webhook_dispatcher")
    assert open_secret(keyring, row["id"], row["previous_secret"]) == before["secret"]


async def test_a_deletion_is_told_as_a_success(dying: Desk) -> None:
    asked = {"subscription_id": await dying.subscribe()}

    assert await killed_at(dying, (CHANGED,), table.DELETE_SUBSCRIPTION, **asked) is None

    with pytest.raises(NotFound):
        await dying.ask(table.GET_SUBSCRIPTION, dying.customer, **asked)


async def test_what_is_sent_again_is_one_more_delivery(dying: Desk) -> None:
    subscription_id = await dying.subscribe()
    delivery_id = await dying.delivery_of(await dying.record(), subscription_id)

    again = await killed_at(
        dying,
        (CHANGED,),
        table.RESEND_DELIVERY,
        subscription_id=subscription_id,
        delivery_id=delivery_id,
    )

    listed = await dying.deliveries(subscription_id)
    assert [found["delivery_id"] for found in listed] == [again["delivery_id"], delivery_id]


async def test_a_disabled_subscription_has_everything_held(dying: Desk) -> None:
    subscription_id = await dying.subscribe()
    await dying.record()

    changed = await killed_at(
        dying,
        (CHANGED,),
        table.UPDATE_SUBSCRIPTION,
        subscription_id=subscription_id,
        status="disabled",
    )

    assert changed["status"] == "disabled"
    assert [found["status"] for found in await dying.deliveries(subscription_id)] == ["held"]


async def test_a_change_that_is_driven_late_does_not_undo_one_that_was_accepted_later(
    dying: Desk,
) -> None:
    desk, service = dying, dying.stack.services["webhook_dispatcher"]
    asked = {"subscription_id": await desk.subscribe()}
    early_id, late_id = uuid.uuid4(), uuid.uuid4()

    async def is_accepted() -> bool:
        return bool(await desk.rows("SELECT 1 FROM inbox WHERE command_id = $1", late_id))

    await service.stop()
    service.spawn(BANKSIDE_CRASH_AT="webhook_dispatcher.driving")
    await service.ready()
    async with asyncio.TaskGroup() as group:
        early = group.create_task(
            desk.ask(
                table.UPDATE_SUBSCRIPTION,
                desk.customer,
                command_id=str(early_id),
                status="disabled",
                **asked,
            )
        )
        await service.ended()
        await _lease_ends_in(desk, early_id, "500 s")
        await service.start()
        late = group.create_task(
            desk.ask(
                table.UPDATE_SUBSCRIPTION,
                desk.customer,
                command_id=str(late_id),
                status="active",
                description="mended",
                **asked,
            )
        )
        await eventually("the later one is accepted", is_accepted)
        await _lease_ends_in(desk, early_id, "0 s")

    assert early.result()["status"] == "disabled"
    assert (late.result()["status"], late.result()["description"]) == ("active", "mended")
    assert await desk.ask(table.GET_SUBSCRIPTION, desk.customer, **asked) == late.result()


async def test_a_change_to_active_that_is_driven_again_leaves_what_is_held_since_it_was_unavailable(
    dying: Desk,
) -> None:
    desk, service = dying, dying.stack.services["webhook_dispatcher"]
    asked = {"subscription_id": await desk.subscribe()}
    active = {**asked, "status": "active"}
    await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked, status="disabled")

    await service.stop()
    service.spawn(BANKSIDE_CRASH_AT=CHANGED)
    await service.ready()
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **active))
        await service.ended()
        # As another process, whose attempt was answered 410.
        await desk.set_status(asked["subscription_id"], "unavailable")
        held = await desk.record()
        await desk.set_status(asked["subscription_id"], "active")
        await leases_end(desk.stack.environment, "webhook_dispatcher")
        await service.start()

    (delivery,) = await desk.deliveries(asked["subscription_id"])
    assert (delivery["event_id"], delivery["status"]) == (held, "held")


async def _lease_ends_in(desk: Desk, command_id: uuid.UUID, interval: str) -> None:
    """The lease of a process that died, on a command."""
    await desk.database.execute(
        "UPDATE inbox SET lease_until = clock_timestamp() + $2::text::interval WHERE command_id = $1",
        *(command_id, interval),
    )


async def test_a_recovery_counts_all_that_it_scheduled(dying: Desk) -> None:
    subscription_id, now = await dying.subscribe(), datetime.now(UTC)
    for _ in range(3):
        event_id = await dying.record()
        await dying.conclude(await dying.delivery_of(event_id, subscription_id), "failed", at=now)

    done = await killed_at(
        dying,
        (CHANGING, CHANGED),
        table.RECOVER_SUBSCRIPTION,
        subscription_id=subscription_id,
        since=now - timedelta(hours=1),
    )

    assert done == {"scheduled": 3}
    assert len(await dying.deliveries(subscription_id, status="pending")) == 3
