"""What stands behind the ports: the fakes of tests, the sandboxes of companies, each with its adapter.

Another provider's adapter passes the suites when its fixture is named in the `params` below and offers what
`WireBank`, `OnboardingBank` or `LedgerBank` asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from deploy.local.services import SERVICES
from libs.persistence.engine import open_database
from libs.providers.increase.client import IncreaseClient
from libs.providers.sessions import open_session
from services.ledger_read.mirror.ledger import open_mirrored_ledger
from tests.contract.ports.increase_ledger import IncreaseLedgerBank, open_increase_ledger
from tests.contract.ports.increase_sandbox import (
    OwnOnboardingBank,
    OwnWireBank,
    at_increase,
    open_own_ledger,
    own_sandbox,
)
from tests.contract.ports.increase_wire_bank import increase_bank
from tests.contract.ports.ledger_banks import (
    FakeLedgerBank,
    LedgerBank,
    SandboxLedgerBank,
    fake_ledger,
)
from tests.contract.ports.onboarding_banks import (
    FakeOnboardingBank,
    IncreaseOnboardingBank,
    OnboardingBank,
    SandboxOnboardingBank,
)
from tests.contract.ports.wire_banks import FakeWireBank, SandboxWireBank, WireBank, fake_core
from tests.integration.provider_sandbox.bank import Bank
from tests.support.increase_bank.server import running_bank
from tests.support.infrastructure import Environment
from tests.support.stack import Stack, running_stack

INCREASE_KEY = "a-key-that-may-all"
SANDBOX = next(service for service in SERVICES if service.name == "provider_sandbox")


@pytest.fixture(
    params=[
        "fake_wire_bank",
        "sandbox_wire_bank",
        "increase_wire_bank",
        at_increase("own_wire_bank"),
    ]
)
def wire_bank(request: pytest.FixtureRequest) -> WireBank:
    """Payments' `ports.CoreBanking`."""
    bank: WireBank = request.getfixturevalue(request.param)
    return bank


@pytest.fixture(
    params=[
        "fake_onboarding_bank",
        "sandbox_onboarding_bank",
        "increase_onboarding_bank",
        at_increase("own_onboarding_bank"),
    ]
)
def onboarding_bank(request: pytest.FixtureRequest) -> OnboardingBank:
    """Onboarding's `ports.IdentityProvider` and `ports.CoreBanking`."""
    bank: OnboardingBank = request.getfixturevalue(request.param)
    return bank


@pytest.fixture(params=["fake_onboarding_bank", "sandbox_onboarding_bank"])
def persons_bank(request: pytest.FixtureRequest) -> OnboardingBank:
    """As `onboarding_bank`, of those where a person is written by itself: at others it comes with its business."""
    bank: OnboardingBank = request.getfixturevalue(request.param)
    return bank


@pytest.fixture(
    params=[
        "fake_ledger_bank",
        "sandbox_ledger_bank",
        "mirrored_ledger_bank",
        "increase_ledger_bank",
        at_increase("own_ledger_bank"),
    ]
)
def ledger_bank(request: pytest.FixtureRequest) -> LedgerBank:
    """ledger_read's `ports.Financial` and `ports.Ledger`."""
    bank: LedgerBank = request.getfixturevalue(request.param)
    return bank


@pytest_asyncio.fixture
async def fake_wire_bank(session: aiohttp.ClientSession) -> AsyncIterator[WireBank]:
    async with fake_core() as (core, url):
        yield FakeWireBank(core, url, session)


@pytest_asyncio.fixture
async def sandbox_wire_bank(
    sandbox: Stack, bank: Bank, session: aiohttp.ClientSession
) -> AsyncIterator[WireBank]:
    yield SandboxWireBank(sandbox, bank, session)


@pytest_asyncio.fixture
async def increase_wire_bank(
    tmp_path: Path, session: aiohttp.ClientSession
) -> AsyncIterator[WireBank]:
    async with increase_bank(tmp_path, session) as bank:
        yield bank


@pytest.fixture
def fake_onboarding_bank() -> OnboardingBank:
    return FakeOnboardingBank()


@pytest_asyncio.fixture
async def sandbox_onboarding_bank(
    sandbox: Stack, bank: Bank, session: aiohttp.ClientSession
) -> AsyncIterator[OnboardingBank]:
    yield SandboxOnboardingBank(sandbox, bank, session)


@pytest_asyncio.fixture
async def increase_onboarding_bank(
    tmp_path: Path, session: aiohttp.ClientSession
) -> AsyncIterator[OnboardingBank]:
    async with running_bank(tmp_path, {INCREASE_KEY: "everything"}) as running:
        client = IncreaseClient("core", running.url, INCREASE_KEY, session)
        yield IncreaseOnboardingBank(running, client)


@pytest_asyncio.fixture
async def fake_ledger_bank(session: aiohttp.ClientSession) -> AsyncIterator[LedgerBank]:
    async with fake_ledger() as (bank, url):
        yield FakeLedgerBank(bank, url, session)


@pytest_asyncio.fixture
async def sandbox_ledger_bank(
    sandbox: Stack, bank: Bank, session: aiohttp.ClientSession
) -> AsyncIterator[LedgerBank]:
    yield SandboxLedgerBank(sandbox, bank, session)


@pytest_asyncio.fixture
async def mirrored_ledger_bank(
    sandbox: Stack, bank: Bank, session: aiohttp.ClientSession, environment: Environment
) -> AsyncIterator[LedgerBank]:
    """The sandbox, with the mirror of its postings before it."""
    mirrored = SandboxLedgerBank(sandbox, bank, session)
    database = open_database(environment.database_urls["ledger_read"], "tests")
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        mirrored.ledger = await open_mirrored_ledger(
            opened, database, mirrored.postings, others=mirrored.ledger
        )
        yield mirrored


@pytest_asyncio.fixture
async def increase_ledger_bank(
    tmp_path: Path, session: aiohttp.ClientSession, environment: Environment
) -> AsyncIterator[IncreaseLedgerBank]:
    database = open_database(environment.database_urls["ledger_read"], "tests")
    try:
        async with open_increase_ledger(tmp_path, session, database) as bank:
            yield bank
    finally:
        await database.close()


@pytest_asyncio.fixture
async def own_wire_bank(session: aiohttp.ClientSession) -> AsyncIterator[WireBank]:
    async with own_sandbox() as sdk:
        yield OwnWireBank(sdk, session)


@pytest_asyncio.fixture
async def own_onboarding_bank(session: aiohttp.ClientSession) -> AsyncIterator[OnboardingBank]:
    async with own_sandbox() as sdk:
        yield OwnOnboardingBank(sdk, session)


@pytest_asyncio.fixture
async def own_ledger_bank(
    session: aiohttp.ClientSession, environment: Environment
) -> AsyncIterator[LedgerBank]:
    database = open_database(environment.database_urls["ledger_read"], "tests")
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        sdk = await opened.enter_async_context(own_sandbox())
        yield await open_own_ledger(sdk, session, opened, database)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def sandbox(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The sandbox alone. Its wires wait until a test settles them."""
    folder = tmp_path_factory.mktemp("sandbox")
    settings = {"BANKSIDE_SANDBOX_WIRE_SECONDS": "3600"}
    async with running_stack(environment, folder, [SANDBOX], **settings) as running:
        yield running


@pytest_asyncio.fixture
async def bank(sandbox: Stack, session: aiohttp.ClientSession) -> AsyncIterator[Bank]:
    """The sandbox as a test orders it about, without faults before and after."""
    bank = Bank(session, sandbox.sandbox_url, sandbox.environment.secrets.provider_tokens)
    await bank.call("DELETE", "/faults", headers={})
    yield bank
    await bank.call("DELETE", "/faults", headers={})


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(32) as opened:
        yield opened
