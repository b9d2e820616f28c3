"""The services of two releases on one database and one broker, with one address for their gateways.

The bank is no part of a release: the sandbox of this checkout serves both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.local.services import OPERATOR_PORT_SETTING, SERVICES
from libs.persistence.migrations import migrate as migrate_service
from tests.support.infrastructure import Environment, migrate
from tests.support.launching import begin_loading
from tests.support.pace import waiting_pace
from tests.support.stack import Stack
from tests.upgrades.address import Address
from tests.upgrades.previous_release import PreviousRelease

BANK = "provider_sandbox"
GATEWAY = "gateway"
RELEASED = tuple(service for service in SERVICES if service.name not in {BANK, "console"})
"""What callers need of a release."""
BEHIND = tuple(service.name for service in RELEASED if service.name != GATEWAY)
"""What the gateways ask."""
SHARED = (
    *("_IDENTITY_URL", "_CORE_URL", "_FINANCIAL_URL", "SANDBOX_PORT", "SANDBOX_PUBLIC_URL"),
    "DRAIN_SECONDS",
)
"""Endings of the settings that both releases have: one bank, and what is set for this test."""


class Releases:
    """The stacks of the previous and the present release.

    Args:
        front: the stack as callers and operators see it: the bank, and the address of the gateways.
    """

    def __init__(self, front: Stack, previous: Stack, present: Stack, address: Address) -> None:
        self.front = front
        self.previous = previous
        self.present = present
        self.address = address

    async def migrate(self) -> None:
        """Bring the database to the revisions of this checkout, as `make migrate` does."""
        await asyncio.to_thread(migrate, self.front.environment.database_urls)


async def start(stack: Stack, names: Iterable[str]) -> None:
    """Start these, and wait until they are ready."""
    names = tuple(names)
    for name in names:
        stack.services[name].spawn()
    for name in names:
        await stack.services[name].ready()


async def end(stack: Stack, names: Iterable[str]) -> None:
    """SIGTERM to one after the other, each of which ends in order."""
    for name in names:
        process = stack.services[name]
        assert await process.stop() == 0, process.log[-4000:]


@asynccontextmanager
async def two_releases(
    release: PreviousRelease, environment: Environment, folder: Path
) -> AsyncIterator[Releases]:
    """The database as the previous release has it, and the bank. Nothing else runs yet.

    Args:
        environment: with roles and schemas, and without tables.
    """
    await asyncio.to_thread(release.migrate, environment.database_urls)
    await migrate_service(BANK, environment.database_urls[f"{BANK}_owner"])
    public, operators = Address(), Address()
    async with public.open(), operators.open():
        ports = {
            "BANKSIDE_GATEWAY_PORT": str(public.port),
            OPERATOR_PORT_SETTING: str(operators.port),
            "BANKSIDE_GATEWAY_DEADLINE_SECONDS": "25",
            # Longer than a connection of the callers is idle, and than the address takes to see that a gateway ends.
            "BANKSIDE_GATEWAY_DRAIN_SECONDS": str(2 * waiting_pace()),
            "BANKSIDE_SANDBOX_WIRE_SECONDS": "0.5",
        }
        bank = [service for service in SERVICES if service.name == BANK]
        front = Stack(environment, folder, bank, **ports)
        shared = {name: value for name, value in front.env.items() if name.endswith(SHARED)}
        for name in ("previous", "present"):
            (folder / name).mkdir()
        previous = Stack(environment, folder / "previous", RELEASED, release.launched, **shared)
        several = {"BANKSIDE_GATEWAY_PROCESSES": "2"}
        present = Stack(environment, folder / "present", RELEASED, **shared, **several)
        for stack in (previous, present):
            gateway = stack.services[GATEWAY]
            public.add(gateway, int(stack.env["BANKSIDE_GATEWAY_PORT"]))
            operators.add(gateway, int(stack.env[OPERATOR_PORT_SETTING]))
        # So that their logs are shown with a failure, and none of them stays.
        front.services |= present.services
        front.services |= {f"previous {name}": one for name, one in previous.services.items()}
        # Now, rather than while callers wait for the address.
        begin_loading(*(f"services.{service.name}" for service in RELEASED))
        try:
            await front.services[BANK].start()
            yield Releases(front, previous, present, public)
        finally:
            await front.stop()
