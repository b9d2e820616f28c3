"""Pauses between attempts."""

from __future__ import annotations

from libs.backoff import Backoff, lengthened


def test_pauses_double_up_to_their_bound() -> None:
    backoff = Backoff(first_seconds=0.5, longest_seconds=3.0)

    pauses = [backoff.pause_seconds(failures) for failures in (1, 2, 3, 4, 10**9)]

    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_jitter_spreads_pauses_around_the_one_without_it() -> None:
    backoff = Backoff(first_seconds=10.0, longest_seconds=10.0, jitter=0.2)

    pauses = {backoff.pause_seconds(1) for _ in range(100)}

    assert len(pauses) > 1
    assert all(8.0 <= pause <= 12.0 for pause in pauses)


def test_a_pause_that_a_server_asks_for_is_never_shortened() -> None:
    pauses = {lengthened(4.0, 0.25) for _ in range(100)}

    assert len(pauses) > 1
    assert all(4.0 <= pause <= 5.0 for pause in pauses)
