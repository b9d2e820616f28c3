"""payments as processes on an environment of their own, and the gateway for the tests that want one."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.ports import LOOPBACK
from deploy.local.services import SERVICES
from tests.support.api import Key
from tests.support.infrastructure import Environment
from tests.support.pace import waiting_pace
from tests.support.ports import free_ports
from tests.support.stack import ServiceProcess, Stack

PAYMENTS = next(service for service in SERVICES if service.name == "payments")
GATEWAY = next(service for service in SERVICES if service.name == "gateway")
GATEWAY_DEADLINE_SECONDS = 6.0


@dataclass
class Office:
    """What outlives a test: the environment and the processes, the second replica only where a test wants it."""

    environment: Environment
    folder: Path
    core_port: int = field(init=False)
    stack: Stack = field(init=False)
    replicas: list[ServiceProcess] = field(init=False)
    keys: dict[str, Key] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.core_port, admin_port = free_ports(2)
        # The bank and onboarding are the test itself.
        quick = str(waiting_pace())
        self.stack = Stack(
            self.environment,
            self.folder,
            (PAYMENTS, GATEWAY),
            BANKSIDE_CORE_URL=f"http://{LOOPBACK}:{self.core_port}/core",
            BANKSIDE_PAYMENTS_PROVIDER_TIMEOUT_SECONDS=quick,
            BANKSIDE_OWNERSHIP_SECONDS=quick,
        )
        first = self.stack.services["payments"]
        settings = {**first.settings, "BANKSIDE_PAYMENTS_ADMIN_PORT": str(admin_port)}
        second = ServiceProcess("services.payments", settings, self.folder / "payments-2.log")
        self.replicas = [first, second]

    async def run(self, count: int, **changes: str) -> None:
        """Exactly so many replicas, those that have to be started with these changes."""
        for number, replica in enumerate(self.replicas):
            if number < count and not replica.is_running:
                replica.spawn(**changes)
            elif number >= count and replica.is_running:
                await replica.stop()
        for replica in self.replicas[:count]:
            await replica.ready()

    async def gateway(self) -> ServiceProcess:
        """Running, and for tests of which each has deadlines to wait for."""
        gateway = self.stack.services["gateway"]
        if not gateway.is_running:
            deadline_seconds = GATEWAY_DEADLINE_SECONDS * waiting_pace()
            await gateway.start(BANKSIDE_GATEWAY_DEADLINE_SECONDS=str(deadline_seconds))
        return gateway

    async def key_of(self, customer_id: str) -> Key:
        """Made once; while somebody answers for onboarding."""
        if customer_id not in self.keys:
            self.keys[customer_id] = await self.stack.new_key(
                "customer", "--customer", customer_id, "--wires-per-minute", "10000"
            )
        return self.keys[customer_id]

    @contextlib.contextmanager
    def frozen(self, number: int) -> Iterator[None]:
        """SIGSTOP, and SIGCONT afterwards."""
        pid = self.replicas[number].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    async def stop(self) -> None:
        await self.stack.stop()
        if self.replicas[1].is_running:
            await self.replicas[1].stop()
