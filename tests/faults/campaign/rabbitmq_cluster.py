"""Three RabbitMQ nodes on this machine, each of which can be killed, stopped, and cut off from the others."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika

from deploy.local.ports import LOOPBACK
from deploy.local.rabbitmq import RabbitMQ
from deploy.local.services import Secrets
from libs.contracts.table import SERVICES
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.probing import PROBE
from libs.messaging.topology import PROBES, consumed_queues
from libs.runtime.supervision import Supervisor
from tests.faults.campaign.port_mapper import PortMapper
from tests.support.infrastructure import START_SECONDS, new_rabbitmq
from tests.support.ports import free_ports
from tests.support.routes import Route
from tests.support.waiting import eventually

NODES = 3
COMMAND_SECONDS = 60.0
CHECK_SECONDS = 10.0
TAKEN_SECONDS = 2.0
"""A queue that takes longer for one message does not work: so it is where two of three members have fallen behind."""
LOOK_SECONDS = 0.3
CHECKED = "campaign.checked"
MORE_THAN_ANY_DISK, ANY_DISK = 10**18, 1_000_000
"""Limits of the free disk, in bytes."""


async def _pass_messages(url: str) -> None:
    """One to a queue of our own and out of it; to each queue that services consume, one that they discard."""
    async with await aio_pika.connect(url) as connection, connection.channel() as channel:
        queue = await channel.declare_queue(
            CHECKED, durable=True, arguments={"x-queue-type": "quorum"}
        )
        await channel.default_exchange.publish(aio_pika.Message(b""), CHECKED)
        await queue.get(no_ack=True, timeout=CHECK_SECONDS)
        probes = await channel.get_exchange(PROBES, ensure=False)
        for service in SERVICES:
            for name in consumed_queues(service):
                async with asyncio.timeout(TAKEN_SECONDS):
                    await probes.publish(aio_pika.Message(b"", type=PROBE), name, mandatory=False)


async def _pass_replies(urls: Sequence[str]) -> None:
    """One from each node to a queue of a connection at each other, as replies go. A node that was stopped for so long
    that the others gave it up does not know of queues that are made at theirs afterwards, until it is restarted.
    """
    async with AsyncExitStack() as opened:
        channels = []
        for url in urls:
            connection = await opened.enter_async_context(await aio_pika.connect(url))
            channels.append(await connection.channel())
        for receiving in channels:
            queue = await receiving.declare_queue(exclusive=True)
            for sending in channels:
                async with asyncio.timeout(TAKEN_SECONDS):
                    await sending.default_exchange.publish(aio_pika.Message(b""), queue.name)
                await queue.get(no_ack=True, timeout=TAKEN_SECONDS)


class RabbitMQCluster:
    """Its queues have a member on each node. Nodes are kept running by the supervisor."""

    def __init__(self, home: Path, secrets: Secrets, supervisor: Supervisor) -> None:
        home.mkdir(mode=0o700)
        self._home = home
        self._supervisor = supervisor
        ports = free_ports(NODES)
        self.nodes = [
            dataclasses.replace(
                new_rabbitmq(home / str(number), secrets),
                name=f"bankside_faults_{number}_{ports[0]}",
                port=port,
            )
            for number, port in enumerate(ports, 1)
        ]
        self._routes: dict[tuple[str, str], Route] = {}
        """From a node to another."""
        self._cut_off: set[Route] = set()

    def url(self, vhost: str) -> str:
        """The administrator's, at the first node."""
        return self.nodes[0].url(vhost)

    def addresses(self) -> Sequence[int]:
        return [node.port for node in self.nodes]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The nodes start, and find each other; port mappers and routes last until the block ends."""
        async with AsyncExitStack() as opened:
            for one in self.nodes:
                for other in self.nodes:
                    if one is not other:
                        route = Route(f"tcp://{LOOPBACK}:{other.distribution_port}")
                        await opened.enter_async_context(route.open())
                        self._routes[one.name, other.name] = route
            registered: dict[str, int] = {}
            for node in self.nodes:
                ports = {
                    other: urlsplit(route.url).port or 0
                    for (one, other), route in self._routes.items()
                    if one == node.name
                }
                mapper = PortMapper({**ports, node.name: node.distribution_port}, registered)
                await opened.enter_async_context(mapper.open(node.epmd_port))
                self._prepare(node)
            for node in self.nodes:
                _, spec = node.children(None, self._home / f"{node.name}.log")
                self._supervisor.start(dataclasses.replace(spec, name=node.name))
            await self._supervisor.until_ready([n.name for n in self.nodes], START_SECONDS)
            try:
                yield
            finally:
                for node in reversed(self.nodes):
                    await self._supervisor.stop(node.name)

    def _prepare(self, node: RabbitMQ) -> None:
        node.prepare()
        peers = [
            f"cluster_formation.classic_config.nodes.{number} = {peer.node}\n"
            for number, peer in enumerate(self.nodes, 1)
        ]
        with (node.home / "rabbitmq.conf").open("a") as configuration:
            configuration.write("cluster_formation.peer_discovery_backend = classic_config\n")
            configuration.writelines(peers)
            # Without it the first node to start declares the queues of its definitions, with itself as the only member.
            configuration.write(f"cluster_formation.target_cluster_size_hint = {NODES}\n")

    def kill(self, node: RabbitMQ) -> None:
        """`kill -9`; it is started again."""
        self._supervisor.kill(node.name)

    def signal(self, node: RabbitMQ, signum: signal.Signals) -> None:
        self._supervisor.kill(node.name, signum)

    async def begin_alarm(self, node: RabbitMQ) -> None:
        """As if the node's disk were full: its free disk is below the limit. All nodes hold publishers back."""
        await self._control("set_disk_free_limit", str(MORE_THAN_ANY_DISK), nodes=[node])

    async def end_alarm(self, node: RabbitMQ) -> None:
        await self._control("set_disk_free_limit", str(ANY_DISK), nodes=[node])

    def cut_off(self, nodes: Collection[RabbitMQ], *, stalled: bool) -> None:
        """Nothing passes between these and the others: no byte at all, or connections are reset."""
        for route in self._between(nodes):
            self._cut_off.add(route)
            if stalled:
                route.stall()
            else:
                route.refuse()

    def heal(self) -> None:
        """All reach each other; connections that were stalled are reset.

        Those between nodes that were not cut off from each other stay: without them there would be no majority.
        """
        for route in self._cut_off:
            route.accept()
            route.cut()
        self._cut_off.clear()

    async def works(self, vhost: str) -> bool:
        """Whether each node takes messages of clients of no service, for every queue, and delivers the others'."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                for node in self.nodes:
                    await _pass_messages(node.url(vhost))
                await _pass_replies([node.url(vhost) for node in self.nodes])
        except (*BROKER_ERRORS, TimeoutError, OSError, StopAsyncIteration):
            return False
        return True

    async def until_works(self, vhost: str) -> None:
        """Return when it does."""

        async def works() -> bool:
            return await self.works(vhost)

        await eventually("the broker works", works, START_SECONDS, LOOK_SECONDS)

    async def restart(self) -> None:
        """Each node anew, as an operator does when they do not find each other again, or a queue takes nothing."""
        for node in self.nodes:
            self._supervisor.kill(node.name)

    def _between(self, nodes: Collection[RabbitMQ]) -> list[Route]:
        names = {node.name for node in nodes}
        return [
            route
            for (one, other), route in self._routes.items()
            if (one in names) != (other in names)
        ]

    async def leaders(self, vhost: str) -> dict[str, RabbitMQ]:
        """Which node leads each quorum queue that has a leader."""
        listed = await self._control(
            *("list_queues", "-p", vhost, "name", "leader", "--formatter", "json")
        )
        nodes = {node.node: node for node in self.nodes}
        return {
            row["name"]: nodes[row["leader"]]
            for row in json.loads(listed)
            if row["leader"] in nodes
        }

    async def queues(self, vhost: str) -> str:
        """A line for each queue: where its members are, and who consumes it. What cannot be said is said so."""
        about = ("name", "type", "state", "leader", "online", "messages", "consumers")
        try:
            return await self._control("list_queues", "-p", vhost, "--timeout", "30", *about)
        except OSError as error:
            return str(error)

    async def _control(self, *command: str, nodes: Sequence[RabbitMQ] = ()) -> str:
        """What `rabbitmqctl` prints, of the first of the nodes that answers. Raises OSError when none does.

        Args:
            nodes: all where there are none.
        """
        said = ""
        for node in nodes or self.nodes:
            _, spec = node.children(None, None)
            tool = node.server.parent / "rabbitmqctl"
            process = await asyncio.create_subprocess_exec(
                *(str(tool), "--quiet", *command),
                env=dict(spec.env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(COMMAND_SECONDS):
                    output, errors = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if process.returncode == 0:
                return output.decode()
            said = errors.decode(errors="replace")
        raise OSError(f"rabbitmqctl: {said}")
