"""A command that was accepted is carried out: once, in order, whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aio_pika
import asyncpg
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage
from msgspec import structs

from deploy.local.ports import LOOPBACK
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import OutcomePending
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.acceptance import Ordering
from libs.handling.commands import Drive
from libs.messaging.command_consumer import COMMAND_PREFETCH
from libs.messaging.envelope import Envelope, Reply, encode
from libs.messaging.refusing import REASON
from libs.messaging.service_client import ServiceClient
from libs.messaging.topology import COMMANDS, REPLIES, dead_queue
from libs.persistence.engine import Database
from tests.integration.gateway.desk import WAIT_SECONDS, calling, carrying_out, until
from tests.integration.replica import TRACES, by_person
from tests.integration.tables import define, execute, rows
from tests.support.infrastructure import Environment
from tests.support.own_servers import own_postgres
from tests.support.pace import pace, waiting_pace
from tests.support.ports import free_ports
from tests.support.queues import declare_service
from tests.support.stack import ServiceProcess

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")
LONGER_THAN_ITS_INDEX_TAKES = random.Random(7).randbytes(4000).hex()
"""An index row has room for 2,704 bytes, and this cannot be compressed to fewer."""
LEASE_SECONDS = 3.0
"""Of replicas, on a quiet machine: one that is held up for two thirds of it loses what it drives to another."""


class Service:
    """The person update; each drive is noted when it begins and ends."""

    def __init__(self, pending: int = 0) -> None:
        self.pending = pending
        """So many drives of a command end as OutcomePending before one succeeds."""
        self.log: list[tuple[str, str]] = []
        self.attempts: list[tuple[int, float]] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, drive: Drive, command: UpdatePerson) -> Result:
        name = f"{command.person_id}/{drive.command_id}"
        self.log.append(("begin", name))
        self.attempts.append((drive.attempt, time.monotonic()))
        await self.may_end.wait()
        await asyncio.sleep(0)
        self.log.append(("end", name))
        if drive.attempt <= self.pending:
            raise OutcomePending
        return Result()

    async def has_begun(self) -> bool:
        return bool(self.log)


def envelope_of(
    service_client: ServiceClient, person_id: str = "p1", seconds: float | None = None
) -> Envelope:
    """`seconds`: until its deadline; None: as long as anything is waited for."""
    if seconds is None:
        seconds = WAIT_SECONDS * pace()
    command_id = str(uuid.uuid4())
    return service_client.envelope(
        UPDATE_PERSON,
        PRINCIPAL,
        UpdatePerson.model_validate({"person_id": person_id, "first_name": "Ada"}),
        command_id=command_id,
        request_id=command_id,
        deadline=time.time() + seconds,
    )


@asynccontextmanager
async def replicas(
    environment: Environment,
    service: Service,
    count: int = 1,
    ordering: Ordering | None = by_person,
) -> AsyncIterator[ServiceClient]:
    """So many replicas with this handler, commands of one person in order; and somebody to ask them."""
    handlers = {UPDATE_PERSON.name: service}
    if count == 0:
        async with calling(environment) as service_client:
            yield service_client
        return
    async with (
        carrying_out(environment, handlers, ordering=ordering),
        replicas(environment, service, count - 1, ordering) as service_client,
    ):
        yield service_client


async def test_a_message_delivered_often_has_one_effect_and_one_answer(
    fresh_environment: Environment,
) -> None:
    service = Service()
    async with replicas(fresh_environment, service, 2) as service_client:
        envelope = envelope_of(service_client)
        connection = await aio_pika.connect(fresh_environment.amqp_url)
        async with connection, connection.channel() as channel:
            commands = await channel.get_exchange(COMMANDS)
            answers = await channel.declare_queue("gateway.replies.test", exclusive=True)
            await answers.bind(REPLIES, answers.name)
            for _ in range(10):
                await commands.publish(
                    Message(encode(envelope), reply_to=answers.name, user_id="gateway"),
                    UPDATE_PERSON.name,
                )
            first = await until(lambda: answers.get(fail=False))
            last = await service_client.send_command(
                envelope_of(service_client)
            )  # by now all ten were taken
            more = await answers.get(fail=False)

    assert [name for _, name in service.log].count(f"p1/{envelope.id}") == 2
    assert first
    assert more is None
    assert last.error is None


async def test_a_request_that_repeats_a_command_whose_stored_reply_cannot_be_read_is_told_that_it_is_pending(
    fresh_environment: Environment, database: Database
) -> None:
    """As on the way back to the release before; one that can read it gives the first answer."""
    service = Service()
    async with replicas(fresh_environment, service) as service_client:
        first = envelope_of(service_client)
        await service_client.send_command(first)
        for stored in ("{", '{"id": 7}'):
            await execute(database, f"UPDATE inbox SET reply = convert_to('{stored}', 'UTF8')")

            reply = await service_client.send_command(
                structs.replace(first, message_id=str(uuid.uuid4()))
            )

            assert reply.error is not None, stored
            assert reply.error.code == OutcomePending.code
    assert len(service.attempts) == 1


async def test_commands_of_one_key_never_overlap_and_keep_their_order_over_replicas(
    fresh_environment: Environment,
) -> None:
    service = Service()
    async with replicas(fresh_environment, service, 2) as service_client:
        sent: list[Envelope] = []
        waits: list[asyncio.Task[Reply]] = []
        for number in range(30):
            sent.append(envelope_of(service_client, f"p{number % 3}"))
            waits.append(asyncio.create_task(service_client.send_command(sent[-1])))
        replies = await asyncio.gather(*waits)

    assert all(reply.error is None for reply in replies)
    for person in ("p0", "p1", "p2"):
        own = [entry for entry in service.log if entry[1].startswith(person)]
        assert [what for what, _ in own] == ["begin", "end"] * 10
        assert all(b[1] == e[1] for b, e in zip(own[::2], own[1::2], strict=True))
    recorded = await recorded_order(fresh_environment)
    assert [
        name.partition("/")[2]
        for what, name in service.log
        if what == "begin" and name.startswith("p1")
    ] == recorded["p1"]


async def recorded_order(environment: Environment) -> dict[str, list[str]]:
    connection = await asyncpg.connect(environment.database_urls["onboarding"])
    found = await connection.fetch("SELECT ordering_key, command_id FROM inbox ORDER BY sequence")
    await connection.close()
    order: dict[str, list[str]] = {}
    for row in found:
        order.setdefault(row["ordering_key"], []).append(str(row["command_id"]))
    return order


async def test_a_pending_outcome_is_driven_again_with_growing_pauses_until_it_is_final(
    fresh_environment: Environment,
) -> None:
    service = Service(pending=3)
    async with replicas(fresh_environment, service) as service_client:
        reply = await service_client.send_command(envelope_of(service_client))

    numbers, times = zip(*service.attempts, strict=True)
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert reply.error is None
    assert list(numbers) == [1, 2, 3, 4]
    assert pauses[0] >= 0.2
    assert pauses[1] >= 0.4
    assert pauses[2] >= 0.8


async def test_a_later_command_waits_for_a_pending_earlier_one(
    fresh_environment: Environment,
) -> None:
    service = Service(pending=2)
    async with replicas(fresh_environment, service, 2) as service_client:
        first, second, other = (envelope_of(service_client, p) for p in ("p1", "p1", "p2"))
        early = asyncio.create_task(service_client.send_command(first))
        await until(service.has_begun)
        await asyncio.gather(
            service_client.send_command(second), service_client.send_command(other), early
        )

    order = [name for what, name in service.log if what == "end"]
    assert max(i for i, n in enumerate(order) if n.endswith(first.id)) < order.index(
        f"p1/{second.id}"
    )


class LaterPartFailed(Exception):
    """A part of the service that is started after its commands are carried out."""


@pytest.mark.parametrize("fails", [False, True], ids=["stopped", "a later part does not start"])
async def test_an_orderly_end_gives_leases_back_so_that_another_goes_on_at_once(
    fresh_environment: Environment, database: Database, fails: bool
) -> None:
    stopping, other = Service(), Service()
    stopping.may_end.clear()
    async with calling(fresh_environment) as service_client:
        with suppress(LaterPartFailed):
            async with carrying_out(fresh_environment, {UPDATE_PERSON.name: stopping}):
                reply = asyncio.create_task(
                    service_client.send_command(envelope_of(service_client))
                )
                await until(stopping.has_begun)
                if fails:
                    raise LaterPartFailed
        # The drain of a stop is 5 s; nothing ends in it.
        leases = await rows(database, "SELECT lease, finished_at FROM inbox")
        async with (
            carrying_out(fresh_environment, {UPDATE_PERSON.name: other}),
            asyncio.timeout(5 * pace()),
        ):
            answer = await reply

    assert [tuple(row) for row in leases] == [(None, None)]
    assert answer.error is None
    assert [attempt for attempt, _ in other.attempts] == [2]


@pytest.mark.parametrize("ordering", [by_person, None], ids=["ordered", "in-groups"])
async def test_a_message_that_cannot_be_accepted_goes_to_the_dead_queue_and_harms_no_other(
    fresh_environment: Environment, ordering: Ordering | None
) -> None:
    service = Service()
    async with replicas(fresh_environment, service, ordering=ordering) as service_client:
        good = envelope_of(service_client)
        never_recordable = [
            encode(structs.replace(envelope_of(service_client), **fields))
            for fields in (
                {"id": "no-uuid"},
                {"message_id": "\0"},
                {"request_id": "\0"},
                {"body_hash": "\0"},
                {"request_id": LONGER_THAN_ITS_INDEX_TAKES},
            )
        ]
        poison = [b"{", b"[]", b"\xff"] + never_recordable * (COMMAND_PREFETCH // 4)
        connection = await aio_pika.connect(fresh_environment.amqp_url)
        async with connection, connection.channel() as channel:
            commands = await channel.get_exchange(COMMANDS)
            await asyncio.gather(
                *(
                    commands.publish(Message(body, user_id="gateway"), UPDATE_PERSON.name)
                    for body in poison
                )
            )
            reply = await service_client.send_command(good)
            dead = await channel.get_queue(dead_queue("onboarding.commands"))
            letters: list[tuple[bytes, object]] = []

            async def keep(message: AbstractIncomingMessage) -> None:
                letters.append((message.body, message.headers[REASON]))

            await dead.consume(keep, no_ack=True)
            await until(lambda: enough(letters, len(poison)))

    assert reply.error is None
    assert sorted(body for body, _ in letters) == sorted(poison)
    assert {reason for body, reason in letters if body in never_recordable} == {"not_recordable"}


async def enough(items: Sequence[object], count: int) -> bool:
    return len(items) >= count


async def test_while_the_database_is_away_nothing_is_lost_and_consuming_goes_on_by_itself(
    fresh_environment: Environment,
) -> None:
    service = Service()
    async with own_postgres(fresh_environment) as postgres:
        environment = fresh_environment.with_urls(database_urls=postgres.database_urls)
        async with replicas(environment, service) as service_client:
            await service_client.send_command(envelope_of(service_client))

            postgres.kill()
            replies = await asyncio.gather(
                *(
                    service_client.send_command(envelope_of(service_client, f"p{n}"))
                    for n in range(20)
                )
            )

    assert [reply.error for reply in replies] == [None] * 20
    assert len({name for _, name in service.log}) == 21


@asynccontextmanager
async def processes(
    environment: Environment, folder: Path, count: int
) -> AsyncIterator[list[ServiceProcess]]:
    """Replicas as processes, not started yet."""
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
    ports = free_ports(count)
    lease_seconds = LEASE_SECONDS * waiting_pace()
    made = [
        ServiceProcess(
            "tests.integration.replica",
            {
                "BANKSIDE_ONBOARDING_AMQP_URL": environment.amqp_urls["onboarding"],
                "BANKSIDE_ONBOARDING_DATABASE_URL": environment.database_urls["onboarding"],
                "BANKSIDE_ONBOARDING_GATEWAY_KEYS": environment.secrets.shared_keys[
                    "gateway-onboarding"
                ],
                "BANKSIDE_ONBOARDING_RECONCILIATION_KEYS": environment.secrets.shared_keys[
                    "reconciliation-onboarding"
                ],
                "BANKSIDE_ADMIN_HOST": LOOPBACK,
                "BANKSIDE_LEASE_SECONDS": str(lease_seconds),
                "BANKSIDE_ONBOARDING_ADMIN_PORT": str(port),
            },
            folder / f"replica-{number}.log",
        )
        for number, port in enumerate(ports)
    ]
    try:
        yield made
    finally:
        for process in made:
            await process.kill()


def lease_of(replica: ServiceProcess) -> float:
    """In seconds."""
    return float(replica.settings["BANKSIDE_LEASE_SECONDS"])


async def test_what_a_killed_replica_was_driving_is_resumed_by_another(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    await define(fresh_environment, "onboarding", *TRACES, "UPDATE gate SET open = false")
    async with processes(fresh_environment, tmp_path, 2) as (first, second):
        await first.start()
        async with calling(fresh_environment) as service_client:
            reply = asyncio.create_task(service_client.send_command(envelope_of(service_client)))
            await until(lambda: rows(database, "SELECT 1 FROM drives"))
            await second.start()

            await first.kill()
            await execute(database, "UPDATE gate SET open = true")
            async with asyncio.timeout(lease_of(first) + 5 * pace()):
                answer = await reply

        drives = await rows(database, "SELECT attempt, pid FROM drives ORDER BY n")
        effects = await rows(database, "SELECT 1 FROM effects")
        assert answer.error is None
        assert [attempt for attempt, _ in drives] == [1, 2]
        assert drives[1][1] == second.pid
        assert len(effects) == 1


async def test_what_takes_longer_than_a_lease_stays_with_whoever_drives_it(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    await define(fresh_environment, "onboarding", *TRACES, "UPDATE gate SET open = false")
    async with processes(fresh_environment, tmp_path, 2) as replicas_of_it:
        for replica in replicas_of_it:
            await replica.start()
        async with calling(fresh_environment) as service_client:
            reply = asyncio.create_task(service_client.send_command(envelope_of(service_client)))
            await until(
                lambda: rows(
                    database,
                    "SELECT 1 FROM inbox WHERE accepted_at < clock_timestamp() - make_interval(secs => :age)",
                    age=2.5 * lease_of(replica),
                )
            )
            await execute(database, "UPDATE gate SET open = true")
            answer = await reply

        drives = await rows(database, "SELECT attempt FROM drives")

    assert answer.error is None
    assert [attempt for (attempt,) in drives] == [1]


async def test_a_crash_at_each_point_leaves_one_effect_and_no_open_command(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    await define(fresh_environment, "onboarding", *TRACES)

    async def is_final() -> bool:
        return not await rows(database, "SELECT 1 FROM inbox WHERE finished_at IS NULL")

    async with (
        processes(fresh_environment, tmp_path, 1) as (replica,),
        calling(fresh_environment) as service_client,
    ):
        asking: asyncio.Task[Reply] | None = None
        for point in ("accepted", "driving", "concluding", "concluded"):
            # It may get there before it is ready.
            replica.spawn(BANKSIDE_CRASH_AT=f"onboarding.{point}")
            asking = asking or asyncio.create_task(
                service_client.send_command(
                    envelope_of(service_client, seconds=4)
                )  # less than all of it takes
            )
            assert await replica.ended() == -9, point
            await execute(database, "UPDATE inbox SET lease_until = now()")  # as if later
            assert await is_final() == (point == "concluded"), point
        await replica.start()
        await until(is_final)
        assert asking is not None
        await asyncio.wait({asking})

    assert len(await rows(database, "SELECT 1 FROM effects")) == 1
    told = asking.exception()
    assert told is None or isinstance(told, OutcomePending)
