"""Postings that arrive in any order, and readings that fail at any page."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.contracts.bank_days import BANK_ZONE
from libs.contracts.errors import ProviderTimeout
from services.ledger_read.mirror import store as store_module
from tests.integration.mirror.mirrors import Mirror, at, newest_first
from tests.support.posting_source import ScriptedSource, posting

HOURS = st.integers(-60, 60)
"""Few, so that several postings have the same moment; around a change of the clocks, in any order."""
STEPS = st.lists(
    st.one_of(
        st.lists(HOURS, min_size=1, max_size=30).map(lambda hours: ("post", hours)),
        st.integers(1, 3).map(lambda call: ("fail", [call])),
        st.just(("read", [])),
    ),
    max_size=8,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, limit=st.sampled_from([1, 4, 10, 100]), days=st.tuples(HOURS, HOURS))
async def test_pages_are_the_history_after_any_arrivals_and_failures(
    mirror: Mirror,
    source: ScriptedSource,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[str, list[int]]],
    limit: int,
    days: tuple[int, int],
) -> None:
    monkeypatch.setattr(store_module, "LARGEST_BLOCK", 6)
    account_id = f"acc_{uuid.uuid4().hex}"
    for step, numbers in steps:
        if step == "post":
            source.post(account_id, *(posting(at(hour)) for hour in numbers))
        elif step == "fail":
            source.failures[len(source.asked) + numbers[0]] = ProviderTimeout()
        else:
            try:
                await mirror.catch_up(account_id)
            except ProviderTimeout:
                continue
            assert (await mirror.page(account_id))[1] == len(source.histories[account_id])
    source.failures.clear()

    await mirror.catch_up(account_id)

    history = source.histories[account_id]
    assert await mirror.all_pages(account_id, limit) == newest_first(history)
    start, end = (at(hour).astimezone(BANK_ZONE).date() for hour in sorted(days))
    chosen = [one for one in history if start <= one.settled_at.astimezone(BANK_ZONE).date() <= end]
    ids, total = await mirror.within(account_id, start, end)
    assert (ids, total) == (newest_first(chosen)[:100], len(chosen))
