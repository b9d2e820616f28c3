"""Two processes of every service, as behind a load balancer and an orchestrator: each is started again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.ports import LOOPBACK
from deploy.local.services import OPERATOR_PORT_SETTING
from libs.runtime.probes import http_ready
from tests.support.infrastructure import Environment
from tests.support.launching import begin_loading
from tests.support.ports import free_ports
from tests.support.stack import SERVED, ServiceProcess, Stack

BANK = "provider_sandbox"
"""Has one process: it stands for what we do not run."""
WATCH_SECONDS = 0.1
LOG_CHARACTERS = 3000
PROBE_SECONDS = 0.5
"""How often the load balancer asks a gateway whether it is ready."""


MIN_READY_SECONDS = 5.0
"""For which a new process serves beside the one before it, as in deploy/kubernetes."""
DRAIN_SECONDS = 3 * PROBE_SECONDS
"""For which a gateway that ends takes requests: longer than the load balancer takes to see it."""


@dataclass
class Replica:
    service: str
    number: int
    process: ServiceProcess
    is_kept: bool = True
    """Whether it is started again when it ends; not while a rolling restart replaces it."""
    starts: int = 0
    failures: list[str] = field(default_factory=list)
    """Endings that no fault caused: the exit code and the end of the log."""
    killed: bool = False

    @property
    def name(self) -> str:
        return f"{self.service}.{self.number}"

    def kill(self) -> None:
        self.killed = True
        self.signal(signal.SIGKILL)

    def signal(self, signum: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signum)

    async def replace(self, successor: ServiceProcess, **changes: str) -> None:
        """End it as an orchestrator does, and return when its successor is ready.

        Args:
            changes: of the successor's environment, for its first life.
        """
        self.is_kept = False
        try:
            await self.process.stop()
            self.process = successor
            self.process.spawn(**changes)
            await self.process.ready()
        finally:
            self.is_kept = True

    async def upgrade(self) -> None:
        """Replace it as "Upgrading" in deploy/README.md has it: it ends once its successor has served for a while."""
        self.is_kept = False
        previous, successor = self.process, _on_ports_of_its_own(self.process)
        try:
            successor.spawn()
            try:
                await successor.ready()
                self.process = successor
                await asyncio.sleep(MIN_READY_SECONDS)
            finally:
                await (previous if self.process is successor else successor).stop()
        finally:
            self.is_kept = True


class Fleet:
    def __init__(self, stack: Stack, replicas: list[Replica]) -> None:
        self.stack = stack
        self.replicas = replicas
        self._ready: set[str] = set()

    def of(self, service: str) -> list[Replica]:
        return [replica for replica in self.replicas if replica.service == service]

    @property
    def gateways(self) -> dict[str, str]:
        """The base URLs of those that the load balancer sends requests to, by name; all when none is ready."""
        ports = {
            replica.name: replica.process.settings["BANKSIDE_GATEWAY_PORT"]
            for replica in self.of("gateway")
        }
        ready = {name: port for name, port in ports.items() if name in self._ready} or ports
        return {name: f"http://{LOOPBACK}:{port}" for name, port in ready.items()}

    async def start(self) -> None:
        for replica in self.replicas:
            replica.process.spawn()
        for replica in self.replicas:
            await replica.process.ready()
        self._ready = {replica.name for replica in self.of("gateway")}

    async def keep(self) -> None:
        """Start again each process that ends, at once, until cancelled."""
        while True:
            for replica in self.replicas:
                if replica.is_kept and not replica.process.is_running:
                    if not replica.killed:
                        code = await replica.process.ended()
                        log = replica.process.log[-LOG_CHARACTERS:]
                        replica.failures.append(f"exit code {code}\n{log}")
                    replica.killed = False
                    replica.starts += 1
                    replica.process.spawn()
            await asyncio.sleep(WATCH_SECONDS)

    async def probe(self) -> None:
        """Ask the gateways whether they are ready, as a load balancer does, until cancelled."""
        while True:
            for replica in self.of("gateway"):
                try:
                    async with asyncio.timeout(PROBE_SECONDS):
                        ready = await http_ready(LOOPBACK, replica.process.admin_port)()
                except (OSError, TimeoutError):
                    ready = False
                (self._ready.add if ready else self._ready.discard)(replica.name)
            await asyncio.sleep(PROBE_SECONDS)

    async def ready(self) -> None:
        for replica in self.replicas:
            await replica.process.ready()


@contextlib.asynccontextmanager
async def running_fleet(
    environment: Environment, folder: Path, **settings: str
) -> AsyncIterator[Fleet]:
    """Every service twice but the bank, ready; kept and probed until the block ends."""
    begin_loading()
    drain = {"BANKSIDE_GATEWAY_DRAIN_SECONDS": str(DRAIN_SECONDS)}
    stack = Stack(environment, folder, SERVED, **(drain | settings))
    replicas = []
    for name, process in stack.services.items():
        replicas.append(Replica(name, 1, process))
        if name != BANK:
            second = _on_ports_of_its_own(process)
            second.log_path = folder / f"{name}.2.log"
            replicas.append(Replica(name, 2, second))
    fleet = Fleet(stack, replicas)
    watchers: list[asyncio.Task[None]] = []
    try:
        await fleet.start()
        watchers = [
            asyncio.create_task(fleet.keep(), name="keep"),
            asyncio.create_task(fleet.probe(), name="probe"),
        ]
        yield fleet
    finally:
        for watcher in watchers:
            watcher.cancel()
        if watchers:
            await asyncio.wait(watchers)
        for replica in replicas:
            replica.signal(signal.SIGCONT)
        async with asyncio.TaskGroup() as group:
            for replica in replicas:
                if replica.process.is_running:
                    group.create_task(replica.process.stop())


def _on_ports_of_its_own(other: ServiceProcess) -> ServiceProcess:
    """The same beside it, with the same log."""
    settings = dict(other.settings)
    for name in settings:
        if name.endswith("_ADMIN_PORT") or name in {"BANKSIDE_GATEWAY_PORT", OPERATOR_PORT_SETTING}:
            [port] = free_ports(1)
            settings[name] = str(port)
    return ServiceProcess(other.module, settings, other.log_path)
