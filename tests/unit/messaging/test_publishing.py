from __future__ import annotations

from typing import Any, cast

import pytest
from aio_pika.abc import AbstractChannel

from libs.messaging.publishing import UNCONFIRMED, Properties, publish


class Underlay:
    """What aio-pika's channel stands on, as far as publishing goes: it notes whether the socket is waited for."""

    def __init__(self, *, publisher_confirms: bool, unconfirmed: int) -> None:
        self.publisher_confirms = publisher_confirms
        self.confirmations = dict.fromkeys(range(unconfirmed))
        self.waited: bool | None = None

    async def basic_publish(self, *_: object, wait: bool, **__: object) -> None:
        self.waited = wait

    async def get_underlay_channel(self) -> Any:
        return self


@pytest.mark.parametrize(
    ("publisher_confirms", "unconfirmed", "waits"),
    [(True, 0, False), (True, UNCONFIRMED, False), (True, UNCONFIRMED + 1, True), (False, 0, True)],
)
async def test_the_socket_is_waited_for_unless_a_bounded_number_of_confirms_are(
    publisher_confirms: bool, unconfirmed: int, waits: bool
) -> None:
    underlay = Underlay(publisher_confirms=publisher_confirms, unconfirmed=unconfirmed)

    channel = cast(AbstractChannel, underlay)
    await publish(channel, "exchange", "key", b"x", Properties(), mandatory=True)

    assert underlay.waited is waits
