"""What every test may ask for. Where a run has workers, its servers start at once; else when the first test asks."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.support.forked_workers import fork_workers
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.interrupts import keep_interrupts
from tests.support.known_types import know_arrays
from tests.support.launching import begin_loading
from tests.support.stack import Stack, running_stack
from tests.support.workers import SharedProcesses

settings.register_profile(
    "on any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("on any machine")
know_arrays()
LONGEST = (
    "tests/integration/payments/",
    "tests/integration/gateway/",
    "tests/faults/",
    "tests/upgrades/",
)
"""In the order in which they begin. Those of one folder that share processes take a minute or more of one worker."""
STACKS = ("tests/e2e/",)
STACKS_WITHIN = 0.8
"""In which part of the tests that they are spread among they begin: the last take a minute."""
SINGLE = ("tests/integration/test_",)
"""Each goes to the next worker that is free; they wait more than others."""
SMALL = ("tests/contract/", "tests/unit/webhook_dispatcher/", "tests/unit/")
"""Those of the dispatcher wait for up to three seconds: not at the end, where the other workers have nothing left."""
RARELY = 20_000
"""Objects that are made, less those that have gone, between two garbage collections. With Python's 700 they took a
fourteenth of the workers' processor time.
"""


def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[Any]) -> None:
    begin_servers(config)  # before: workers are forked from what inherits the name of the run
    fork_workers(config, specs)


def begin_servers(config: pytest.Config) -> None:
    """Start what the first tests ask for while tests are imported and collected, for which one core is enough."""
    opened = ExitStack()
    config.add_cleanup(opened.close)
    opened.enter_context(Infrastructure())
    begin_loading()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedProcesses:
    return SharedProcesses(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt modules and tests from garbage collection: they stay. It took a sixth of the time of collecting tests,
    which each worker does before its first one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(RARELY)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests begin first, so that none is alone at the end, and the small ones are last. Between them stacks
    are spread among tests that mostly wait, so that the processor is busy throughout.
    """

    def of(folders: Sequence[str]) -> list[pytest.Item]:
        found = (item for folder in folders for item in items if item.nodeid.startswith(folder))
        return list(dict.fromkeys(found))

    known = (*LONGEST, *STACKS, *SINGLE, *SMALL)
    others = [item for item in items if not item.nodeid.startswith(known)]
    stacks = _placed(of(STACKS), STACKS_WITHIN)
    placed = sorted([*stacks, *_placed(of(SINGLE) + others)], key=itemgetter(0))
    items[:] = [*of(LONGEST), *(item for _, item in placed), *of(SMALL)]


def _placed(
    items: Sequence[pytest.Item], within: float = 1.0
) -> Iterator[tuple[float, pytest.Item]]:
    """Each with the share of all that stands before its module, of `within`."""
    before: dict[str, float] = {}
    for number, item in enumerate(items):
        module = item.nodeid.partition("::")[0]
        yield before.setdefault(module, within * number / len(items)), item


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    keep_interrupts()


@pytest.fixture(scope="session")
def infrastructure() -> Iterator[Infrastructure]:
    """PostgreSQL and RabbitMQ, shared by all workers of this run."""
    with Infrastructure() as connected:
        yield connected


@pytest.fixture(scope="session")
def environment(infrastructure: Infrastructure) -> Environment:
    """A migrated database and a virtual host of this worker, shared by its tests."""
    return infrastructure.create()


@pytest.fixture
def fresh_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    """A migrated database and a virtual host for one test, each made when the test asks for it."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest.fixture
def empty_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    """Roles and schemas without any table, and a virtual host, for one test."""
    environment = infrastructure.create(migrated=False)
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stack(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """Every service, running on this worker's environment. A test that kills one starts it again."""
    async with running_stack(environment, tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest_asyncio.fixture
async def fresh_stack(fresh_environment: Environment, tmp_path: Path) -> AsyncIterator[Stack]:
    """Every service on an environment of one test's own (4 s)."""
    async with running_stack(fresh_environment, tmp_path) as running:
        yield running
