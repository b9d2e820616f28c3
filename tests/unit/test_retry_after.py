from __future__ import annotations

from datetime import UTC, datetime, timedelta

from libs.retry_after import retry_after
from tests.support.with_each import with_each

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONGEST = timedelta(hours=10)


@with_each(
    [
        ("1", 1),
        (" 120 ", 120),
        ("0120", 120),
        ("36000", 36_000),
        ("36001", 36_000),
        ("9" * 60, 36_000),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30),
        ("Sun Mar  1 12:00:30 2026", 30),
        ("Mon, 02 Mar 2026 12:00:00 GMT", 36_000),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 36_000),
    ]
)
def test_a_later_time_is_understood_up_to_ten_hours(case: tuple[str, int]) -> None:
    value, seconds = case

    assert retry_after(value, NOW, LONGEST) == NOW + timedelta(seconds=seconds)


@with_each(
    [
        None,
        "",
        "0",
        "-5",
        "+5",
        "1.5",
        "1e3",
        "٣",
        "5 s",
        "soon",
        "5, 10",
        "NaN",
        "Infinity",
        "9" * 100_000,
        "Sun, 01 Mar 2026 11:59:30 GMT",
        "Sun, 99 Mar 2026 12:00:30 GMT",
        "Sun, 01 Foo 2026 12:00:30 GMT",
        "Sun, 01 Mar 2026 25:00:30 GMT",
        "Sun, 01 Mar 99999 12:00:30 GMT",
        "Sun Mar  1 12:00:30",
        "2026-03-01T12:00:30Z",
        "\x00",
    ],
    lambda value: repr(value)[:40],
)
def test_garbage_and_the_past_are_ignored(value: str | None) -> None:
    assert retry_after(value, NOW, LONGEST) is None
