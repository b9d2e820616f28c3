"""Copies of refused messages, by a publisher and a session that stand in for the broker's."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
import structlog

from libs.messaging.delivery import Delivery
from libs.messaging.publishing import Properties, Publisher
from libs.messaging.refusing import Refuser
from libs.messaging.session import Session


class Publishing:
    """Copies to the dead queue wait for `confirmed`, which may have an error."""

    def __init__(self) -> None:
        self.copies: list[str | None] = []
        self.confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def publish(self, _: str, __: str, ___: bytes, properties: Properties) -> None:
        self.copies.append(properties.message_id)
        await asyncio.shield(self.confirmed)


class AtBroker:
    """A session with this publisher."""

    def __init__(self, publishing: Publishing) -> None:
        self._publishing = publishing

    async def publisher(self, *, confirms: bool) -> Publisher:
        assert confirms
        return cast(Publisher, self._publishing)


class Refused:
    """A delivery with this message id, and how it was settled."""

    def __init__(self, message_id: str) -> None:
        self.body = b"{}"
        self.properties = Properties(message_id=message_id)
        self.is_settled = False
        self.settled: list[str] = []

    async def ack(self) -> None:
        self.settled.append("acked")

    async def reject(self) -> None:
        self.settled.append("rejected")


async def attached(refuser: Refuser) -> Publishing:
    publishing = Publishing()
    await refuser.attach(cast(Session, AtBroker(publishing)))
    return publishing


def refusing(refuser: Refuser, message: Refused) -> asyncio.Task[None]:
    log: Any = structlog.get_logger()
    refusal = refuser.refuse(cast(Delivery, message), "unreadable", "It cannot be read.", log)
    return asyncio.create_task(refusal)


async def all_wait() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_second_message_of_one_id_has_its_reason_while_the_copy_of_the_first_is_under_way() -> (
    None
):
    refuser = Refuser("onboarding.commands")
    publishing = await attached(refuser)
    first, second = Refused("same"), Refused("same")

    refusals = [refusing(refuser, message) for message in (first, second)]
    await all_wait()
    publishing.confirmed.set_result(None)
    await asyncio.gather(*refusals)

    assert publishing.copies == ["same", "same"]
    assert (first.settled, second.settled) == (["acked"], ["acked"])


@pytest.mark.parametrize("ends", ["by an error", "by a cancellation"])
async def test_a_copy_over_which_a_session_was_lost_is_not_made_again(ends: str) -> None:
    refuser, message = Refuser("onboarding.commands"), Refused("deadly")
    lost = await attached(refuser)
    refusal = refusing(refuser, message)
    await all_wait()
    if ends == "by an error":
        lost.confirmed.set_exception(ConnectionError())
    else:
        refusal.cancel()
    await asyncio.wait({refusal})
    next_session = await attached(refuser)

    again = Refused("deadly")
    await refusing(refuser, again)

    assert (next_session.copies, again.settled) == ([], ["rejected"])
