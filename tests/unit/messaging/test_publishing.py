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

    async def basic_publish(self, *_: object, wait: bool, **__: object) -> None:
        self.waited.append(wait)
        await self.confirm.wait()


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
    assert publisher.unconfirmed_seconds == 0

    waiting = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0.05)
    before = publisher.unconfirmed_seconds
    given_up = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait({given_up})
    after = publisher.unconfirmed_seconds
    channel.confirm.set()
    await waiting

    assert 0 < before <= after
    assert publisher.unconfirmed_seconds == 0


async def test_without_confirms_nothing_waits_for_one() -> None:
    channel = Recording()
    publisher = Publisher(cast(Channel, channel), "gateway", confirms=False)

    waiting = asyncio.create_task(publish(publisher))
    await asyncio.sleep(0.01)

    assert publisher.unconfirmed_seconds == 0
    channel.confirm.set()
    await waiting
