"""Tests of faults share one running stack per worker. After each module a reconciliation finds nothing.

A difference does not go away by itself, and each reconciliation compares everything: one after the last test of a
module finds what any of them left. With `BANKSIDE_TEST_STRICT` it follows each test.

Tests that need servers of their own reconcile by themselves. Where only gateway and dispatcher run, there is nothing to
compare.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.live import (
    Deployment,
    Live,
    chosen_bank,
    deployment,
    idempotency_key,
    own_environment,
)
from tests.support.live import live as healthy_stack
from tests.support.pace import IS_STRICT
from tests.support.reconciling import assert_reconciled

__all__ = ["chosen_bank", "deployment", "healthy_stack", "idempotency_key", "own_environment"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def unreconciled(deployment: Deployment) -> AsyncIterator[list[str]]:
    """Names of the module's tests after which there was no reconciliation; it follows the last of them."""
    tests: list[str] = []
    yield tests
    if tests:
        try:
            await assert_reconciled(deployment.stack)
        except AssertionError as error:
            raise AssertionError(f"after {', '.join(tests)}: {error}") from error


@pytest_asyncio.fixture
async def live(
    healthy_stack: Live, unreconciled: list[str], request: pytest.FixtureRequest
) -> AsyncIterator[Live]:
    """A healthy stack, which a test leaves healed, with each service running.

    In the end our books, the bank's and what callers were told agree, and nothing is in flight.
    """
    yield healthy_stack
    await healthy_stack.bank.heal()
    for process in healthy_stack.stack.services.values():
        if not process.is_running:
            await process.start()
    if IS_STRICT:
        await assert_reconciled(healthy_stack.stack)
    else:
        unreconciled.append(request.node.name)
