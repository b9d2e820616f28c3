"""Faults of the servers that the stack stands on: the broker's nodes, the network between them, and the database."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import ClassVar

from deploy.local.rabbitmq import RabbitMQ
from tests.faults.campaign.clocks import ClockSteps
from tests.faults.campaign.faults import FAULTS, Fault, Ground
from tests.faults.campaign.servers import VHOST, Servers

UNNOTICED_SECONDS = (1.0, 3.0)
"""Between the loss of the primary and the decision to promote the standby."""


class ServerFault(Fault):
    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        assert ground.servers is not None, "a run with a cluster"
        self.servers: Servers = ground.servers


class BrokerFault(ServerFault):
    """With it the run says when the broker itself works again."""

    def _nodes(self, count: int) -> list[RabbitMQ]:
        return self.ground.random.sample(self.servers.rabbitmq.nodes, count)


class KillLeader(BrokerFault):
    """`kill -9` of the broker's node that leads most queues; it is started again."""

    name, weight = "broker: leader of queues killed", 1.5

    async def strike(self) -> None:
        leading = Counter(
            node.name for node in (await self.servers.rabbitmq.leaders(VHOST)).values()
        )
        node = max(self.servers.rabbitmq.nodes, key=lambda node: leading[node.name])
        self.detail = f"node {node.name}, leader of {leading[node.name]} queues"
        self.servers.rabbitmq.kill(node)
        self.ground.kills += 1


class StopNode(BrokerFault):
    """SIGSTOP of one of the broker's nodes, and SIGCONT."""

    name, weight = "broker: node stopped, continued", 0.7
    SECONDS = (2.0, 15.0)

    async def strike(self) -> None:
        [node] = self._nodes(1)
        seconds = self.ground.random.uniform(*self.SECONDS)
        self.detail = f"node {node.name} for {seconds:.1f} s"
        self.servers.rabbitmq.signal(node, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.servers.rabbitmq.signal(node, signal.SIGCONT)


class MinorityCutOff(BrokerFault):
    """One of the broker's nodes is cut off from the two others, by stalled or by reset connections."""

    name, weight = "broker: minority cut off", 1.0
    count: ClassVar[int] = 1
    """Of nodes that reach no other."""
    SECONDS = (5.0, 20.0)

    async def strike(self) -> None:
        nodes = self._nodes(self.count)
        stalled = self.ground.random.random() < 0.5
        seconds = self.ground.random.uniform(*self.SECONDS)
        names = ", ".join(node.name for node in nodes)
        self.detail = f"{names} {'stalled' if stalled else 'reset'} for {seconds:.1f} s"
        for node in nodes:
            self.servers.rabbitmq.cut_off([node], stalled=stalled)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.servers.rabbitmq.heal()


class NoMajority(MinorityCutOff):
    """No node reaches another, so that all pause. It ends when the broker is back."""

    name, weight, count = "broker: no majority", 0.5, 3

    async def strike(self) -> None:
        await super().strike()
        await self.servers.rabbitmq.until_works(VHOST)


class KillMajority(BrokerFault):
    """`kill -9` of two of the three nodes at once; they are started again. It ends when the broker is back."""

    name, weight = "broker: majority killed", 0.5

    async def strike(self) -> None:
        for node in self._nodes(2):
            self.servers.rabbitmq.kill(node)
            self.ground.kills += 1
        await self.servers.rabbitmq.until_works(VHOST)


class BrokerDiskFull(BrokerFault):
    """A node's free disk is below its limit, so that the cluster takes nothing from publishers."""

    name, weight = "broker: disk full", 0.7
    SECONDS = (5.0, 15.0)

    async def strike(self) -> None:
        [node] = self._nodes(1)
        seconds = self.ground.random.uniform(*self.SECONDS)
        self.detail = f"node {node.name} for {seconds:.1f} s"
        await self.servers.rabbitmq.begin_alarm(node)
        try:
            await asyncio.sleep(seconds)
        finally:
            await self.servers.rabbitmq.end_alarm(node)


class KillPrimary(ServerFault):
    """`kill -9` of the database's primary, which is started again."""

    name, weight = "database: primary killed", 0.7

    async def strike(self) -> None:
        self.servers.postgres.kill_primary()
        self.ground.kills += 1


class Promote(ServerFault):
    """The primary is lost for good, and the standby promoted. One that was promoted before gets a standby first."""

    name, weight = "database: standby promoted", 1.0

    async def strike(self) -> None:
        seconds = self.ground.random.uniform(*UNNOTICED_SECONDS)
        self.detail = f"after {seconds:.1f} s"
        await self.servers.postgres.repair()
        await self.servers.postgres.lose_primary(seconds)
        self.servers.database_route.cut()
        self.ground.kills += 1


class DatabaseDiskFull(ServerFault):
    """Nothing more can be written to the primary's disk: tables do not grow, and a commit that begins a file of the WAL
    ends the server, which does not start until there is room.
    """

    name, weight = "database: disk full", 1.0
    SECONDS = (5.0, 20.0)

    async def strike(self) -> None:
        postgres = self.servers.postgres
        seconds = self.ground.random.uniform(*self.SECONDS)
        begins_wal = self.ground.random.random() < 0.5
        self.detail = f"for {seconds:.1f} s{', also for the WAL' if begins_wal else ''}"
        await postgres.fill_disk()
        try:
            if begins_wal:
                await postgres.begin_wal_segment()
            await asyncio.sleep(seconds)
        finally:
            await postgres.free_disk()


CLUSTER_FAULTS: tuple[type[Fault], ...] = (
    *FAULTS,
    ClockSteps,
    KillLeader,
    StopNode,
    MinorityCutOff,
    NoMajority,
    KillMajority,
    BrokerDiskFull,
    KillPrimary,
    Promote,
    DatabaseDiskFull,
)
