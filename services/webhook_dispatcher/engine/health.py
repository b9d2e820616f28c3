"""What each attempt says of its endpoint: the breaker, slowness, and how long nothing has succeeded.

- *Circuit breaker.* 5 attempts in a row that timed out or did not reach the endpoint open it for 30 s. Then it is
  half-open: one attempt at a time probes the endpoint. A probe that fails opens it for twice as long as the last time,
  10 minutes at most; any answer, of any status, closes it. Attempts that were under way when it opened do not
  change it. Deliveries that wait for it spend no attempts.
- *Slow* is an endpoint since an attempt took 5 s or more, whether or not it was answered, until one is answered within
  2 s.
- A forbidden address, and what was not tried for a reason of our own, say nothing about the endpoint.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from services.webhook_dispatcher.ports import Attempt, Verdict
from services.webhook_dispatcher.repository.healths import Health

BREAKER_ATTEMPTS = 5
PROBE_SECONDS = 30.0
MOST_PROBE_SECONDS = 600.0
SLOW_MS = 5000
FAST_MS = 2000
SUCCESS_NOTED = timedelta(seconds=60)
"""Successes closer than this are not each noted: a busy endpoint's row is not written at every batch."""


def after_attempt(health: Health, attempt: Attempt, *, failed_for_good: bool) -> Health:
    """The endpoint's health after an attempt, which ended the delivery as failed when `failed_for_good`."""
    match attempt.verdict:
        case Verdict.SUCCEEDED:
            known = _timed(_succeeded(_answered(health), attempt), attempt)
        case Verdict.REFUSED | Verdict.GONE:
            known = _timed(_answered(health), attempt)
        case Verdict.TIMED_OUT | Verdict.UNREACHABLE:
            known = _timed(_not_reached(health, attempt), attempt)
        case Verdict.FORBIDDEN | Verdict.NOT_TRIED:
            known = health
    if failed_for_good:
        known = replace(
            known,
            failing_since=known.failing_since or ended_at(attempt),
            failed_events=known.failed_events + 1,
        )
    return known


def ended_at(attempt: Attempt) -> datetime:
    return attempt.attempted_at + timedelta(milliseconds=attempt.duration_ms)


def _answered(health: Health) -> Health:
    if not health.unreachable_in_a_row and health.open_until is None:
        return health
    return replace(health, unreachable_in_a_row=0, open_until=None, probe_seconds=None)


def _succeeded(health: Health, attempt: Attempt) -> Health:
    at, noted = ended_at(attempt), health.last_success_at
    was_failing = health.failed_events > 0
    if noted is not None and not was_failing and (at - noted) < SUCCESS_NOTED:
        return health
    return replace(
        health, failing_since=None, failed_events=0, last_success_at=max(at, noted or at)
    )


def _not_reached(health: Health, attempt: Attempt) -> Health:
    at = ended_at(attempt)
    in_a_row = health.unreachable_in_a_row + 1
    if health.open_until is not None:
        if attempt.attempted_at < health.open_until:
            return health
        seconds = min(2 * (health.probe_seconds or PROBE_SECONDS), MOST_PROBE_SECONDS)
    elif in_a_row >= BREAKER_ATTEMPTS:
        seconds = PROBE_SECONDS
    else:
        return replace(health, unreachable_in_a_row=in_a_row)
    return replace(
        health,
        unreachable_in_a_row=in_a_row,
        open_until=at + timedelta(seconds=seconds),
        probe_seconds=seconds,
    )


def _timed(health: Health, attempt: Attempt) -> Health:
    if attempt.duration_ms >= SLOW_MS:
        return health if health.is_slow else replace(health, is_slow=True)
    answered = attempt.verdict in (Verdict.SUCCEEDED, Verdict.REFUSED, Verdict.GONE)
    if health.is_slow and answered and attempt.duration_ms < FAST_MS:
        return replace(health, is_slow=False)
    return health
