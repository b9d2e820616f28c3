"""The rules of an endpoint's health (interface §8): its circuit breaker, whether it is slow, and when its
subscription becomes unavailable.

- *Circuit breaker.* It opens for 30 s after 5 attempts in a row that timed out or did not reach the endpoint. Then it
  is half-open: one attempt at a time probes the endpoint. A probe that fails opens it for twice as long as the last
  time, 10 minutes at most. Any answer, of any status, closes it. Attempts that were under way when it opened do not
  change it. While it is open, no attempts are made, and deliveries wait.
- *Slow* is an endpoint from an attempt of 5 s or more, answered or not, until an attempt is answered within 2 s.
- *Unavailable* becomes a subscription whose endpoint is without a success for 5 days, and has at least 10 failed events
  over at least 24 hours. While the circuit breaker is open few attempts are made, and events seldom fail for good: an
  event that has been due for as long as a whole schedule, and for a day, counts as failed too.
- An address that is forbidden counts as one that was not reached: a subscriber must not see by the pauses, or by the
  end of the subscription, which names the internal network has.
- An attempt that was not made for a reason of our own changes nothing, and does not count towards the retry schedule:
  it is made again after half a minute, or a twentieth of the delivery's age up to ten minutes, for as long as a whole
  schedule lasts. The age counts from the endpoint's reset, or from the release of a delivery that was held, where that
  is later.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from services.webhook_dispatcher.ports import Attempt, AttemptOutcome
from services.webhook_dispatcher.repository.endpoints import Health, OverdueDeliveries

BREAKER_ATTEMPTS = 5
PROBE_SECONDS = 30.0
MOST_PROBE_SECONDS = 600.0
SLOW_MS = 5000
FAST_MS = 2000
NOTED = timedelta(seconds=60)
"""A success, or a failure like the last one, within this time of the last one is not written, so that a busy endpoint's
row is not written with each batch.
"""
NO_SUCCESS = timedelta(days=5)
FAILED_EVENTS = 10
FAILED_OVER = timedelta(hours=24)


def after_attempt(health: Health, attempt: Attempt, *, failed_for_good: bool) -> Health:
    """The endpoint's health after an attempt, which ended the delivery as failed when `failed_for_good`."""
    match attempt.outcome:
        case AttemptOutcome.SUCCEEDED:
            known = _timed(_succeeded(_answered(health), attempt), attempt)
        case AttemptOutcome.REFUSED | AttemptOutcome.GONE:
            known = _timed(_answered(health), attempt)
        case AttemptOutcome.TIMED_OUT | AttemptOutcome.UNREACHABLE | AttemptOutcome.FORBIDDEN:
            known = _timed(_not_reached(health, attempt), attempt)
        case AttemptOutcome.NOT_TRIED:
            known = health
    if attempt.outcome not in (AttemptOutcome.SUCCEEDED, AttemptOutcome.NOT_TRIED):
        known = _with_failure(known, attempt)
    if known.state is not health.state:
        known = replace(known, state_since=ended_at(attempt))
    if failed_for_good and attempt.outcome is not AttemptOutcome.NOT_TRIED:
        known = replace(
            known,
            failing_since=known.failing_since or ended_at(attempt),
            failed_events=known.failed_events + 1,
        )
    return known


def ended_at(attempt: Attempt) -> datetime:
    return attempt.attempted_at + timedelta(milliseconds=attempt.duration_ms)


def may_become_unavailable(health: Health, now: datetime) -> bool:
    """Whether `should_become_unavailable` may be true, as far as the health alone shows."""
    failing = health.failed_events > 0 or health.open_until is not None
    return failing and not _succeeded_lately(health.last_success_at, now)


def should_become_unavailable(health: Health, overdue: OverdueDeliveries, now: datetime) -> bool:
    """Whether the endpoint's subscription becomes unavailable, by the rule above.

    Args:
        overdue: the deliveries that were due before `overdue_before`, up to `FAILED_EVENTS`.
    """
    if _succeeded_lately(health.last_success_at or overdue.known_since, now):
        return False
    if overdue.count >= FAILED_EVENTS:
        return True
    since = health.failing_since
    return (
        since is not None
        and now - since >= FAILED_OVER
        and health.failed_events + overdue.count >= FAILED_EVENTS
    )


def overdue_before(now: datetime, whole_schedule: timedelta) -> datetime:
    """A delivery that waits and was due before this counts as failed: for a whole schedule, a day at least."""
    return now - max(whole_schedule, FAILED_OVER)


def _succeeded_lately(last: datetime | None, now: datetime) -> bool:
    return last is not None and now - last < NO_SUCCESS


def _answered(health: Health) -> Health:
    if not health.unreachable_in_a_row and health.open_until is None:
        return health
    return replace(health, unreachable_in_a_row=0, open_until=None, probe_seconds=None)


def _succeeded(health: Health, attempt: Attempt) -> Health:
    at, noted = ended_at(attempt), health.last_success_at
    if noted is not None and (at - noted) < NOTED:
        failed_at = health.last_failure_at
        was_failing = health.failed_events > 0 or (failed_at is not None and failed_at >= noted)
        if not was_failing:
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


def _with_failure(health: Health, attempt: Attempt) -> Health:
    """A failure like the last one is noted once in `NOTED`."""
    at, last = ended_at(attempt), health.last_failure_at
    is_known = (attempt.response_status, attempt.error) == (
        health.last_failure_status,
        health.last_failure_error,
    )
    if is_known and last is not None and at - last < NOTED:
        return health
    return replace(
        health,
        last_failure_at=at,
        last_failure_status=attempt.response_status,
        last_failure_error=attempt.error,
    )


def _timed(health: Health, attempt: Attempt) -> Health:
    if attempt.duration_ms >= SLOW_MS:
        return health if health.is_slow else replace(health, is_slow=True)
    answered = attempt.outcome in (
        AttemptOutcome.SUCCEEDED,
        AttemptOutcome.REFUSED,
        AttemptOutcome.GONE,
    )
    if health.is_slow and answered and attempt.duration_ms < FAST_MS:
        return replace(health, is_slow=False)
    return health
