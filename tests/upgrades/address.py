"""One address for several gateways, as a load balancer of TCP connections gives it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.support.balancer import Balancer
from tests.support.stack import ServiceProcess
from tests.support.waiting import eventually

POLL_SECONDS = 0.2
"""Between two looks at `/ready` of a gateway."""
FAILURES = 3
"""So many looks in a row find a gateway that is no longer ready. One that fails may mean that the machine is busy."""


@dataclass
class _Behind:
    process: ServiceProcess
    port: int
    is_ready: bool = False
    failures: int = 0


class Address:
    """Connections go in turn to the gateways that are ready. What a gateway loses, its caller loses."""

    def __init__(self) -> None:
        self._balancer = Balancer(self._ports, tries=1)
        self._gateways: list[_Behind] = []
        self._taken_out: set[ServiceProcess] = set()
        self._looking: list[asyncio.Task[None]] = []

    @property
    def port(self) -> int:
        return self._balancer.port

    @property
    def refused(self) -> int:
        """Connections that were closed because no gateway took them."""
        return self._balancer.refused

    def add(self, process: ServiceProcess, port: int) -> None:
        """From now on the gateway, which listens on this port, is asked whether it is ready."""
        gateway = _Behind(process, port)
        self._gateways.append(gateway)
        self._looking.append(asyncio.create_task(_look_for_ever(gateway), name="look"))

    def take_out(self, process: ServiceProcess) -> None:
        """The gateway gets no more connections. It keeps those that it has."""
        self._taken_out.add(process)

    def put_back(self, process: ServiceProcess) -> None:
        """Whether it gets connections depends on its readiness again."""
        self._taken_out.discard(process)

    async def is_taken(self) -> None:
        """Return when a gateway is ready for connections."""

        async def is_ready() -> bool:
            return any(map(self._gets, self._gateways))

        await eventually("a gateway is ready", is_ready)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen until the block ends."""
        async with self._balancer.open():
            try:
                yield
            finally:
                for looking in self._looking:
                    looking.cancel()
                if self._looking:
                    await asyncio.wait(self._looking)

    def _ports(self) -> list[int]:
        return [gateway.port for gateway in self._gateways if self._gets(gateway)]

    def _gets(self, gateway: _Behind) -> bool:
        return gateway.is_ready and gateway.process not in self._taken_out


async def _look_for_ever(gateway: _Behind) -> None:
    while True:
        is_ready = await _is_ready(gateway)
        gateway.failures = 0 if is_ready else gateway.failures + 1
        gateway.is_ready = is_ready or (gateway.is_ready and gateway.failures < FAILURES)
        await asyncio.sleep(POLL_SECONDS)


async def _is_ready(gateway: _Behind) -> bool:
    try:
        return gateway.process.is_running and await gateway.process.is_ready()()
    except (OSError, TimeoutError):
        return False
