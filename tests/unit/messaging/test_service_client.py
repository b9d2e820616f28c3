"""What a caller of a command is told, whatever becomes of its publication."""

from __future__ import annotations

import asyncio
import time
import uuid
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError
from aiormq import Channel, spec

from libs.contracts.accounts import ListCustomerAccounts
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import BanksideError, OutcomePending, ProviderTimeout, Unavailable
from libs.contracts.ledger_read_operations import LIST_CUSTOMER_ACCOUNTS
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.messaging import service_client as service_client_module
from libs.messaging.broker_errors import session_loss_as_error
from libs.messaging.envelope import Envelope, Reply, encode
from libs.messaging.publishing import Publisher, underlying
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.service_client import (
    OUTSTANDING_QUERIES,
    PART_OF_A_TENANT,
    REPLIES_END_SECONDS,
    ServiceClient,
)
from libs.messaging.session import Session
from tests.support.pace import pace

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")


class NoSealer:
    def seal(self, plaintext: str, context: str) -> str:
        return plaintext

    def open(self, token: str, context: str) -> str:
        return token


class ScriptedChannel:
    """A channel that declares everything, and whose publications end as they are told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.published: list[str] = []

    name = "replies"

    async def declare_queue(self, *_: object, **__: object) -> Any:
        return self

    async def bind(self, *_: object, **__: object) -> None:
        pass

    async def unbind(self, *_: object, **__: object) -> None:
        pass

    async def get_underlay_channel(self) -> Channel:
        return cast(Channel, self)

    async def basic_consume(self, _queue: str, on_delivery: Any, **__: object) -> Any:
        self._on_delivery = on_delivery
        return spec.Basic.ConsumeOk(consumer_tag="replies")

    async def basic_publish(self, *_: object, routing_key: str, **__: object) -> None:
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        self.published.append(routing_key)

    async def deliver(self, reply: Reply, sender: str) -> None:
        properties = spec.Basic.Properties(user_id=sender)
        await self._on_delivery(
            SimpleNamespace(
                body=encode([reply]),
                header=SimpleNamespace(properties=properties),
                redelivered=False,
                channel=self,
                delivery_tag=1,
            )
        )


class ScriptedSession:
    user = "gateway"

    def __init__(self, channel: ScriptedChannel, *, is_blocked: bool = False) -> None:
        self.is_blocked = is_blocked
        self._channel = cast(AbstractChannel, channel)

    async def channel(self) -> AbstractChannel:
        return self._channel

    async def publisher(self, *, confirms: bool) -> Publisher:
        return Publisher(await underlying(self._channel), self.user, confirms=confirms)


async def client_on(
    channel: ScriptedChannel,
    *,
    is_blocked: bool = False,
    deadlines: RequestDeadlines | None = None,
    commands_of_a_tenant: int = 100,
) -> ServiceClient:
    service_client = ServiceClient(NoSealer(), deadlines, commands_of_a_tenant=commands_of_a_tenant)
    await service_client.attach(cast(Session, ScriptedSession(channel, is_blocked=is_blocked)))
    return service_client


def an_update(service_client: ServiceClient, tenant: str = "tenant") -> Envelope:
    return service_client.envelope(
        UPDATE_PERSON,
        msgspec.structs.replace(PRINCIPAL, tenant=tenant),
        UpdatePerson.model_validate({"person_id": "p"}),
        command_id=str(uuid.uuid4()),
        request_id="r",
        deadline=time.time() + 5 * pace(),
    )


async def told(error: BaseException) -> BanksideError:
    service_client = await client_on(ScriptedChannel(error))
    with pytest.raises(BanksideError) as raised:
        await service_client.send_command(an_update(service_client))
    return raised.value


async def list_accounts(
    service_client: ServiceClient, seconds: float, tenant: str = "tenant"
) -> Any:
    principal = msgspec.structs.replace(PRINCIPAL, tenant=tenant)
    return await service_client.query(
        LIST_CUSTOMER_ACCOUNTS, principal, ListCustomerAccounts(), time.time() + seconds
    )


async def test_while_the_broker_blocks_publishers_nothing_is_sent() -> None:
    channel = ScriptedChannel()
    service_client = await client_on(channel, is_blocked=True)

    with pytest.raises(Unavailable):
        await service_client.send_command(an_update(service_client))
    with pytest.raises(Unavailable):
        await list_accounts(service_client, 5 * pace())

    assert channel.published == []


async def test_a_query_beyond_the_bound_of_its_service_is_unavailable_at_once() -> None:
    service_client = await client_on(ScriptedChannel())
    async with asyncio.TaskGroup() as group:
        unanswered = [
            group.create_task(list_accounts(service_client, 30, f"t_{n % 2}"))
            for n in range(OUTSTANDING_QUERIES)
        ]
        await asyncio.sleep(0)

        async with asyncio.timeout(5):
            with pytest.raises(Unavailable):
                await list_accounts(service_client, 30)

        assert not any(task.done() for task in unanswered)
        for task in unanswered:
            task.cancel()


async def test_one_tenant_leaves_room_for_the_others() -> None:
    service_client = await client_on(ScriptedChannel())
    async with asyncio.TaskGroup() as group:
        its_part = round(OUTSTANDING_QUERIES * PART_OF_A_TENANT)
        unanswered = [
            group.create_task(list_accounts(service_client, 30, "t_busy")) for _ in range(its_part)
        ]
        await asyncio.sleep(0)

        with pytest.raises(Unavailable):
            await list_accounts(service_client, 30, "t_busy")
        with pytest.raises(ProviderTimeout):
            await list_accounts(service_client, 0.01, "t_other")

        for task in unanswered:
            task.cancel()


async def test_commands_of_one_tenant_leave_connections_to_the_others() -> None:
    channel = ScriptedChannel()
    service_client = await client_on(channel, commands_of_a_tenant=2)

    async def send(tenant: str) -> None:
        await service_client.send_command(an_update(service_client, tenant))

    async with asyncio.TaskGroup() as group:
        first, second = [group.create_task(send("t_busy")) for _ in range(2)]
        while len(channel.published) < 2:
            await asyncio.sleep(0)

        with pytest.raises(Unavailable):
            await send("t_busy")
        others = [group.create_task(send("t_other"))]
        first.cancel()
        await asyncio.wait({first})
        others.append(group.create_task(send("t_busy")))
        while len(channel.published) < 4:
            await asyncio.sleep(0)

        for task in (second, *others):
            assert not task.done()
            task.cancel()


async def test_queries_that_ended_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_client_module, "OUTSTANDING_QUERIES", 1)
    service_client = await client_on(ScriptedChannel())

    for _ in range(3):
        with pytest.raises(ProviderTimeout):
            await list_accounts(service_client, 0.01)


async def test_a_query_whose_session_is_lost_is_unavailable_at_once() -> None:
    channel = ScriptedChannel()
    service_client = await client_on(channel)
    async with asyncio.timeout(5):
        asking = asyncio.create_task(list_accounts(service_client, 30))
        while not channel.published:
            await asyncio.sleep(0)

        service_client.detach()

        with pytest.raises(Unavailable):
            await asking


@pytest.mark.parametrize(
    "error",
    [
        Exception(),  # as aiormq ends confirms when FIN follows a burst of frames
        ConnectionResetError(),
        asyncio.CancelledError(),  # of the confirm, not of the caller
        ZeroDivisionError(),
        RuntimeError("loop"),
        TimeoutError(),
    ],
    ids=repr,
)
async def test_whatever_goes_wrong_once_a_command_was_written_is_pending(
    error: BaseException,
) -> None:
    assert isinstance(await told(error), OutcomePending)


@pytest.mark.parametrize(
    "error", [DeliveryError(None, spec.Basic.Nack()), ChannelInvalidStateError()], ids=repr
)
async def test_a_command_that_was_refused_or_never_written_was_not_started(
    error: BaseException,
) -> None:
    assert isinstance(await told(error), Unavailable)


async def test_a_caller_that_is_cancelled_itself_stays_so() -> None:
    async def wait() -> None:
        with session_loss_as_error():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_reply_that_comes_in_the_turn_in_which_a_stop_ends_the_wait_is_the_answer() -> None:
    channel, deadlines = ScriptedChannel(), RequestDeadlines()
    service_client = await client_on(channel, deadlines=deadlines)
    update = an_update(service_client)
    sending = asyncio.create_task(service_client.send_command(update))
    while not channel.published:
        await asyncio.sleep(0)
    reply = Reply(id=update.id, to=update.message_id)

    deadlines.bring_forward(0)
    await channel.deliver(reply, "onboarding")

    assert await sending == reply


async def test_a_command_that_a_stop_leaves_unanswered_is_pending() -> None:
    channel, deadlines = ScriptedChannel(), RequestDeadlines()
    service_client = await client_on(channel, deadlines=deadlines)
    sending = asyncio.create_task(service_client.send_command(an_update(service_client)))
    while not channel.published:
        await asyncio.sleep(0)

    deadlines.bring_forward(0)

    with pytest.raises(OutcomePending):
        await sending


async def test_what_is_sent_once_a_stop_takes_no_more_replies_is_not_started() -> None:
    channel, deadlines = ScriptedChannel(), RequestDeadlines()
    service_client = await client_on(channel, deadlines=deadlines)
    ending = asyncio.create_task(service_client.end_replies_at_stop())
    deadlines.bring_forward(REPLIES_END_SECONDS)
    async with asyncio.timeout(5 * pace()):
        await deadlines.until_last(REPLIES_END_SECONDS)
        await asyncio.sleep(0)

    with pytest.raises(Unavailable):
        await service_client.send_command(an_update(service_client))
    with pytest.raises(Unavailable):
        await list_accounts(service_client, 5 * pace())

    assert channel.published == []
    ending.cancel()
