"""Entries of the bank's feed, in every form that they may have."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from libs.contracts.wires import WireState
from libs.persistence.inbox import Leased
from libs.providers.feed_entries import FeedCursor
from tests.unit.payments.bench import Bench

AT = "2026-01-31T12:00:00Z"
_positions = count(1)


def entry(kind: str, about: Leased | None, **more: Any) -> dict[str, Any]:
    transaction_id = str(about.command_id) if about else None
    return {
        "position": next(_positions),
        "type": kind,
        "occurred_at": AT,
        "transaction_id": transaction_id,
        **more,
    }


@pytest.mark.parametrize(
    ("reason", "stored"),
    [
        ("no\x00such\u0007thing", "no?such?thing"),
        ("two\nlines", "two?lines"),
        ("x" * 10_000, "x" * 255),
        ("", None),
        (None, None),
    ],
    ids=["control characters", "lines", "long", "empty", "none"],
)
async def test_a_reason_that_cannot_be_stored_does_not_stop_the_news_of_others(
    bench: Bench, reason: str | None, stored: str | None
) -> None:
    rejected = await bench.wire(WireState.SUBMITTED)
    completed = await bench.wire(WireState.SUBMITTED)
    bench.core.events = [
        entry("wire.rejected", rejected, reason=reason),
        entry("wire.completed", completed),
    ]

    await bench.apply_feed()

    wire = await bench.found(rejected)
    assert (wire.state, wire.reason_detail) == (WireState.REJECTED, stored)
    assert (await bench.found(completed)).state is WireState.COMPLETED


async def test_a_return_tells_of_a_completion_that_was_not_heard_of(bench: Bench) -> None:
    returned = await bench.wire(WireState.SUBMITTED)
    bench.core.events = [entry("wire.returned", returned, reason="account_closed")]

    await bench.apply_feed()

    wire = await bench.found(returned)
    assert [step.state for step in wire.history][-2:] == [WireState.COMPLETED, WireState.RETURNED]
    assert wire.reason_detail == "account_closed"


@pytest.mark.parametrize("kind", ["account.restricted", "wire.completed"])
async def test_an_entry_without_a_wire_is_passed_over(bench: Bench, kind: str) -> None:
    completed = await bench.wire(WireState.SUBMITTED)
    nameless = entry(kind, None)
    del nameless["transaction_id"]
    bench.core.events = [entry(kind, None), nameless, entry("wire.completed", completed)]

    await bench.apply_feed()

    assert (await bench.found(completed)).state is WireState.COMPLETED


async def test_a_moment_without_a_zone_is_reported_as_utc(bench: Bench) -> None:
    completed = await bench.wire(WireState.SUBMITTED)
    moment = "2046-01-31T12:00:00"
    bench.core.events = [entry("wire.completed", completed, occurred_at=moment)]

    [reported] = await bench.feed.fetch(FeedCursor(0), 10)

    assert reported.report
    assert reported.report.occurred_at.isoformat() == f"{moment}+00:00"
