"""When the next sweep is, by what the last one found."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from services.webhook_dispatcher.engine import due_subscriptions
from services.webhook_dispatcher.engine.due_subscriptions import POLL_SECONDS, Sweeps

SUBSCRIPTION = UUID(int=7)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_after_a_sweep_that_found_nothing_the_next_is_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(due_subscriptions, "QUIET_POLL_SECONDS", 3600.0)
    quiet, busy = Sweeps(), Sweeps()

    quiet.note(now(), None, anything_waits=False)
    busy.note(now(), None, anything_waits=True)

    assert quiet.next_at > now() + 3000
    assert busy.next_at <= now() + POLL_SECONDS


async def test_a_sweep_of_several_claims_found_something_though_its_last_claim_did_not() -> None:
    sweeps = Sweeps()

    sweeps.note(now(), SUBSCRIPTION, anything_waits=True)
    sweeps.note(now(), None, anything_waits=False)

    assert sweeps.next_at <= now() + POLL_SECONDS


async def test_what_failed_meanwhile_is_expected_to_wait() -> None:
    sweeps = Sweeps()
    sweeps.note(now(), None, anything_waits=False)

    sweeps.expect()

    assert sweeps.next_at <= now() + POLL_SECONDS


async def test_what_is_expected_is_not_swept_for_before_the_share_of_the_time_allows() -> None:
    sweeps = Sweeps()
    sweeps.note(now() - 0.4, None, anything_waits=True)

    sweeps.expect()

    assert sweeps.next_at > now() + 3


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_after_a_sweep_that_a_stalled_database_held_up_the_next_is_seconds_later(
    is_wanted: bool,
) -> None:
    sweeps = Sweeps()

    sweeps.note(now() - 1000, None, anything_waits=True)
    if is_wanted:
        sweeps.want()

    assert sweeps.next_at <= now() + 5
