"""How much a publisher writes without waiting for the socket."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiormq import Channel

from libs.messaging.publishing import UNCONFIRMED, Properties, Publisher


class Recording:
    """A channel that notes whether the socket is waited for, and confirms when it is told to."""

    def __init__(self) -> None:
        self.waited: list[bool] = []
        self.confirm = asyncio.Event()
        self.confirmations: dict[int, str] = {}
        self.delivery_tag = 0

    async def basic_publish(self, *_: object, wait: bool, **__: object) -> None:
        self.waited.append(wait)
        self.delivery_tag += 1
        tag = self.delivery_tag
        self.confirmations[tag] = "awaited"
        await self.confirm.wait()
        del self.confirmations[tag]


async def publish(publisher: Publisher, *, wait_for_socket: bool = True) -> None:
    await publisher.publish("exchange", "key", b"x", Properties(), wait_for_socket=wait_for_socket)


async def test_the_socket_is_waited_for_once_too_many_messages_are_unconfirmed() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=True)

    async with asyncio.TaskGroup() as group:
        for _ in range(UNCONFIRMED + 1):
            group.create_task(publish(publisher))
        while len(channel.waited) <= UNCONFIRMED:
            await asyncio.sleep(0)
        channel.confirm.set()
    await publish(publisher)

    assert channel.waited == [False] * UNCONFIRMED + [True, False]


@pytest.mark.parametrize("waits", [True, False])
async def test_without_confirms_the_socket_is_waited_for_as_the_sender_says(waits: bool) -> None:
    channel = Recording()
    channel.confirm.set()

    await publish(
        Publisher(cast(Channel, channel), "gateway", confirms=False), wait_for_socket=waits
    )

    assert channel.waited == [waits]


async def test_what_waits_for_a_confirm_is_known_until_something_is_confirmed() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=True)
    assert publisher.measure_unconfirmed() == 0

    waiting = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0)
    first = publisher.measure_unconfirmed()
    await asyncio.sleep(0.05)
    later = publisher.measure_unconfirmed()
    channel.confirm.set()
    await waiting

    assert first == 0 < later
    assert publisher.measure_unconfirmed() == 0


async def test_a_confirm_that_its_sender_does_not_wait_for_any_more_is_owed() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=True)
    seen = []

    for _ in range(3):
        given_up = asyncio.create_task(publish(publisher))
        await asyncio.sleep(0.01)
        given_up.cancel()
        await asyncio.wait({given_up})
        seen.append(publisher.measure_unconfirmed())

    assert seen[0] == 0 < seen[1] < seen[2]


async def test_a_message_that_is_never_confirmed_counts_only_while_no_other_is() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=True)
    stuck = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0)
    channel.confirmations[channel.delivery_tag] = "never"
    publisher.measure_unconfirmed()
    await asyncio.sleep(0.01)
    assert publisher.measure_unconfirmed() > 0

    channel.delivery_tag += 1  # a message that is confirmed at once

    assert publisher.measure_unconfirmed() == 0
    stuck.cancel()
    await asyncio.wait({stuck})


async def test_without_confirms_nothing_waits_for_one() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=False)

    waiting = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0.01)

    assert publisher.measure_unconfirmed() == 0
    channel.confirm.set()
    await waiting
