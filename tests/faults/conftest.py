"""Tests of faults share one running stack per worker. Each ends with a reconciliation that finds nothing.

Those that need servers of their own reconcile by themselves. Where only gateway and dispatcher run, there is nothing to
compare.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.live import Live, chosen_bank, deployment, idempotency_key, own_environment
from tests.support.live import live as healthy_stack
from tests.support.reconciling import assert_reconciled

__all__ = ["chosen_bank", "deployment", "healthy_stack", "idempotency_key", "own_environment"]


@pytest_asyncio.fixture
async def live(healthy_stack: Live) -> AsyncIterator[Live]:
    """Whatever failed: afterwards our books, the bank's and what callers were told agree, and nothing is in flight."""
    yield healthy_stack
    await healthy_stack.bank.heal()
    for process in healthy_stack.stack.services.values():
        if not process.is_running:
            await process.start()
    await assert_reconciled(healthy_stack.stack)
