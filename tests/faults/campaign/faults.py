"""What is broken, one fault at a time: how it strikes, for how long, and which operations have no part in it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

import aio_pika

from libs.messaging.topology import commands_queue, queries_queue
from tests.faults.campaign.callers import Callers
from tests.faults.campaign.operations import Kind
from tests.faults.campaign.replicas import BANK, Fleet, Replica
from tests.faults.campaign.servers import Servers
from tests.support.waiting import eventually

SERVED_BY: Mapping[str, frozenset[Kind]] = {
    "gateway": frozenset(Kind),
    "onboarding": frozenset({Kind.ONBOARDING, Kind.UPDATE}),
    "ledger_read": frozenset({Kind.READ}),
    "payments": frozenset({Kind.WIRE, Kind.READ}),
    "webhook_dispatcher": frozenset({Kind.SUBSCRIPTION}),
    "reconciliation": frozenset(),
}
"""The operations on whose way a service is."""
EVERYTHING = frozenset(Kind)
MEGABYTES = 50
IDLE_CONNECTIONS = 10_000
CONNECTION_SECONDS = 5.0


@dataclass
class Ground:
    """What a fault works on."""

    fleet: Fleet
    callers: Callers
    random: random.Random
    factor: float = 1.0
    """By which the callers' rate is multiplied."""
    kills: int = 0
    servers: Servers | None = None
    """Where they can be broken, too."""


class Fault(ABC):
    """One kind of fault. An instance strikes once.

    `touched` are the operations that it may slow down or have refused while it lasts; the others are innocent.
    """

    name: ClassVar[str]
    weight: ClassVar[float]
    """How often it is drawn, beside the others."""
    pause_seconds: ClassVar[float] = 0.3
    """Between the recovery from the fault before and this one."""
    touched: frozenset[Kind] = EVERYTHING

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.detail = ""
        """What was broken, for the history."""

    @abstractmethod
    async def strike(self) -> None:
        """Break it, keep it broken for a while, and mend it: recovery is measured from the return on."""

    def _some(self, replicas: Sequence[Replica], count: int) -> list[Replica]:
        return self.ground.random.sample(list(replicas), min(count, len(replicas)))

    def _touching(self, replicas: Sequence[Replica]) -> None:
        self.touched = frozenset().union(*(SERVED_BY[r.service] for r in replicas))
        self.detail = ", ".join(replica.name for replica in replicas)

    @property
    def _ours(self) -> list[Replica]:
        return [replica for replica in self.ground.fleet.replicas if replica.service != BANK]


class Kill(Fault):
    """`kill -9` of one to three processes of any services at once."""

    name, weight = "kill -9", 30.0

    async def strike(self) -> None:
        chosen = self._some(self._ours, self.ground.random.choice((1, 1, 1, 2, 3)))
        self._touching(chosen)
        for replica in chosen:
            replica.kill()
        self.ground.kills += len(chosen)


class KillAService(Fault):
    """`kill -9` of both processes of a service at once."""

    name, weight = "kill -9 of both replicas", 8.0

    async def strike(self) -> None:
        service = self.ground.random.choice(sorted(SERVED_BY))
        chosen = self.ground.fleet.of(service)
        self._touching(chosen)
        for replica in chosen:
            replica.kill()
        self.ground.kills += len(chosen)


class KillTwice(Fault):
    """`kill -9` of a process, and of its successor while that starts."""

    name, weight = "kill -9, and again while it starts", 4.0

    async def strike(self) -> None:
        [replica] = self._some(self._ours, 1)
        self._touching([replica])
        starts = replica.starts
        replica.kill()
        self.ground.kills += 1

        async def is_started() -> bool:
            return replica.starts > starts

        await eventually(f"{replica.name} is started again", is_started, poll_seconds=0.01)
        await asyncio.sleep(self.ground.random.uniform(0.05, 0.6))
        replica.kill()
        self.ground.kills += 1


class Freeze(Fault):
    """SIGSTOP of a process, and SIGCONT after a while: it believes what it knew, and its leases are another's."""

    name, weight = "SIGSTOP, SIGCONT", 3.0
    SECONDS = (0.5, 8.0)

    async def strike(self) -> None:
        [replica] = self._some(self._ours, 1)
        self._touching([replica])
        seconds = self.ground.random.uniform(*self.SECONDS)
        self.detail += f" for {seconds:.1f} s"
        replica.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            replica.signal(signal.SIGCONT)


class RollingRestart(Fault):
    """Every process is replaced, one after the other, as an upgrade does. It begins when nothing else is amiss."""

    name, weight = "rolling restart of everything", 0.6
    pause_seconds = 10.0
    touched = frozenset()

    async def strike(self) -> None:
        for replica in self._ours:
            await replica.upgrade()


class BankFails(Fault):
    """The bank fails at a part of the requests, before or after it has done what was asked."""

    name, weight = "bank fails at 5 to 50 %", 2.0
    KINDS = ("error", "accept_then_drop", "duplicate_reply", "fail_after_success", "latency")
    SECONDS = (2.0, 6.0)

    async def strike(self) -> None:
        draw = self.ground.random
        kinds = draw.sample(self.KINDS, draw.choice((1, 2)))
        apis = draw.sample(("identity", "core", "financial"), draw.choice((1, 2, 3)))
        probability = round(draw.uniform(0.05, 0.5), 2)
        self.detail = f"{', '.join(kinds)} at {', '.join(apis)}, {probability:.0%}"
        for api in apis:
            for kind in kinds:
                more = {"milliseconds": draw.choice((200, 3000))} if kind == "latency" else {}
                await self.ground.callers.bank.fault(
                    api, "*", kind, probability=probability, **more
                )
        await asyncio.sleep(draw.uniform(*self.SECONDS))
        await self.ground.callers.bank.heal()


class Poison(Fault):
    """Messages that no service can read, in the queues of all: not JSON, not a command, or of 50 MB."""

    name, weight = "poison messages, one of 50 MB", 0.6
    touched = frozenset()
    BODIES = (b"{", b"\x00" * 64, b'{"operation": "no_such_thing"}')

    async def strike(self) -> None:
        url = self.ground.fleet.stack.environment.amqp_url
        async with asyncio.timeout(60):
            connection = await aio_pika.connect(url)
            async with connection, await connection.channel() as channel:
                exchange = channel.default_exchange
                for service in ("onboarding", "payments", "webhook_dispatcher"):
                    for queue in (commands_queue(service), queries_queue(service)):
                        for body in self.BODIES:
                            await exchange.publish(aio_pika.Message(body), queue)
                large = aio_pika.Message(b"a" * MEGABYTES * 1_000_000)
                with contextlib.suppress(aio_pika.exceptions.AMQPError):
                    await exchange.publish(large, commands_queue("payments"))
                    raise AssertionError(f"the broker took a message of {MEGABYTES} MB")


class Overload(Fault):
    """Four times as many operations as before, for a while."""

    name, weight = "overload, four times the rate", 1.0
    SECONDS = 8.0

    async def strike(self) -> None:
        self.ground.factor = 4.0
        try:
            await asyncio.sleep(self.SECONDS)
        finally:
            self.ground.factor = 1.0


class VanishingCallers(Fault):
    """Callers whose connections end in the middle of a request, before they have read the answer."""

    name, weight = "callers that vanish", 1.5
    touched = frozenset()
    COUNT = 100

    async def strike(self) -> None:
        gateways = list(self.ground.fleet.gateways.values())
        await asyncio.gather(
            *(_vanish(self.ground.random.choice(gateways), n) for n in range(self.COUNT)),
        )


async def _vanish(base_url: str, number: int) -> None:
    """A request of which a part is sent, or all; the connection is reset at once."""
    url = urlsplit(base_url)
    request = (
        f"POST /customer/wire HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 200\r\n"
        f"X-API-SUBSCRIPTION-KEY: sub_{number}\r\n\r\n" + "{" * 200
    ).encode()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECTION_SECONDS):
            _, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(request[: 1 + number * 7 % len(request)])
            await writer.drain()
            writer.transport.abort()


class SlowHeaders(Fault):
    """Connections that send a header's byte now and then."""

    name, weight = "slow headers", 0.7
    touched = frozenset()
    COUNT, SECONDS = 300, 6

    async def strike(self) -> None:
        base_url = self.ground.random.choice(list(self.ground.fleet.gateways.values()))
        await asyncio.gather(*(self._drip(base_url) for _ in range(self.COUNT)))

    async def _drip(self, base_url: str) -> None:
        url = urlsplit(base_url)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(self.SECONDS + CONNECTION_SECONDS):
                _, writer = await asyncio.open_connection(url.hostname, url.port)
                try:
                    writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
                    for _ in range(self.SECONDS):
                        writer.write(b"a")
                        await writer.drain()
                        await asyncio.sleep(1)
                finally:
                    writer.transport.abort()


class IdleConnections(Fault):
    """Ten thousand connections that send nothing, half of them at each gateway."""

    name, weight = "10,000 idle connections", 0.4
    touched = frozenset()
    SECONDS = 4.0
    AT_ONCE = 200

    async def strike(self) -> None:
        writers: list[asyncio.StreamWriter] = []
        slots = asyncio.Semaphore(self.AT_ONCE)

        async def connect(base_url: str, source: str) -> None:
            url = urlsplit(base_url)
            with contextlib.suppress(OSError, TimeoutError):
                async with slots, asyncio.timeout(CONNECTION_SECONDS):
                    _, writer = await asyncio.open_connection(
                        url.hostname, url.port, local_addr=(source, 0)
                    )
                    writers.append(writer)

        gateways = list(self.ground.fleet.gateways.values())
        try:
            await asyncio.gather(
                *(
                    connect(gateways[n % len(gateways)], f"127.0.{1 + n // 250}.{1 + n % 250}")
                    for n in range(IDLE_CONNECTIONS)
                )
            )
            self.detail = f"{len(writers)} opened"
            await asyncio.sleep(self.SECONDS)
        finally:
            for writer in writers:
                writer.transport.abort()


FAULTS: tuple[type[Fault], ...] = (
    Kill,
    KillAService,
    KillTwice,
    Freeze,
    RollingRestart,
    BankFails,
    Poison,
    Overload,
    VanishingCallers,
    SlowHeaders,
    IdleConnections,
)
"""Those that need nothing but processes; more where the servers are a cluster."""
