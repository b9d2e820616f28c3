"""A connection whose peer reads nothing: its senders are not stuck, and its end ends every wait on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.connection import CLOSE_SECONDS, Connection, connect
from libs.messaging.publishing import Properties, Publisher
from libs.messaging.session import Session
from tests.integration.amqp_wire import Wire, wire_to
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

MEBIBYTE = b"x" * 1024 * 1024
MORE_THAN_A_SOCKET_TAKES = 64
MORE_THAN_AIORMQ_BUFFERS = 100


async def publish(publisher: Publisher, body: bytes, *, wait_for_socket: bool = True) -> None:
    await publisher.publish(
        "", "no-such-queue", body, Properties(), wait_for_socket=wait_for_socket
    )


@asynccontextmanager
async def connected(environment: Environment) -> AsyncIterator[tuple[Connection, Session, Wire]]:
    async with wire_to(environment.amqp_url) as wire:
        connection = await connect(wire.url, "tests", heartbeat_seconds=60)
        yield connection, Session(connection, "bankside"), wire
        await connection.end(politely=False)


async def full(publisher: Publisher) -> asyncio.Task[None]:
    """Write until the socket takes no more; the publication that waits for it."""

    async def fill() -> None:
        for _ in range(MORE_THAN_A_SOCKET_TAKES):
            await publish(publisher, MEBIBYTE)

    filling = asyncio.create_task(fill(), name="fill")
    await asyncio.wait({filling}, timeout=0.5)
    assert not filling.done()
    return filling


async def test_a_sender_that_does_not_wait_for_the_socket_waits_for_no_place_in_a_buffer(
    environment: Environment,
) -> None:
    async with connected(environment) as (connection, session, wire):
        publisher = await session.publisher(confirms=False)
        other = await session.publisher(confirms=False)
        wire.stall()
        filling = await full(publisher)

        async with asyncio.timeout(5 * pace()):
            for _ in range(MORE_THAN_AIORMQ_BUFFERS):
                await publish(other, b"x", wait_for_socket=False)

        await connection.end(politely=False)
        with pytest.raises(BROKER_ERRORS):
            await filling


@pytest.mark.parametrize("politely", [True, False])
async def test_the_end_of_a_connection_that_is_not_read_ends_every_wait_on_it(
    environment: Environment, politely: bool
) -> None:
    async with connected(environment) as (connection, session, wire):
        publisher = await session.publisher(confirms=False)
        confirmed = await session.publisher(confirms=True)
        channel = await session.channel()
        wire.stall()
        waits = [
            await full(publisher),
            *(
                asyncio.create_task(publish(confirmed, b"x"), name="publish")
                for _ in range(MORE_THAN_AIORMQ_BUFFERS)
            ),
        ]
        request = asyncio.create_task(channel.set_qos(prefetch_count=1), name="request")

        async with asyncio.timeout((2 * CLOSE_SECONDS + 1) * pace()):
            await connection.end(politely=politely)

        await asyncio.wait({*waits, request}, timeout=1 * pace())
        errors = [task.exception() for task in waits]
        assert all(isinstance(error, BROKER_ERRORS) for error in errors), errors
        assert request.done()


async def test_a_request_that_is_given_up_on_a_connection_that_is_not_read_ends_at_once(
    environment: Environment,
) -> None:
    async with connected(environment) as (_, session, wire):
        publisher = await session.publisher(confirms=False)
        channel = await session.channel()
        wire.stall()
        filling = await full(publisher)
        request = asyncio.create_task(channel.set_qos(prefetch_count=1), name="request")
        await asyncio.sleep(0)
        request.cancel()

        async def is_done() -> bool:
            return request.done()

        await eventually("the request ends", is_done)
        assert not filling.done()
        filling.cancel()
        await asyncio.wait({filling})


async def test_an_end_that_is_canceled_drops_the_connection_all_the_same(
    environment: Environment,
) -> None:
    async with connected(environment) as (connection, session, wire):
        publisher = await session.publisher(confirms=False)
        wire.stall()
        filling = await full(publisher)
        ending = asyncio.create_task(connection.end(politely=True), name="end")
        await asyncio.wait({ending}, timeout=0.1)

        ending.cancel()

        async with asyncio.timeout(CLOSE_SECONDS / 2 * pace()):
            with pytest.raises(BROKER_ERRORS):
                await filling
        assert ending.cancelled()
