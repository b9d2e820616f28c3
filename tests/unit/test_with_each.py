"""A test of many cases fails with each that does."""

from __future__ import annotations

import pytest

from tests.support.with_each import with_each


def test_a_test_of_many_cases_goes_on_after_a_failure_and_names_all_that_failed() -> None:
    seen = []

    @with_each(range(5), name=lambda number: f"number {number}")
    def check(number: int) -> None:
        seen.append(number)
        if number == 2:
            pytest.fail("no exception was raised")
        assert number % 2

    with pytest.raises(BaseExceptionGroup, match="3 of 5 cases") as failed:
        check()

    assert seen == [0, 1, 2, 3, 4]
    notes = [note for failure in failed.value.exceptions for note in failure.__notes__]
    assert notes == ["with number 0", "with number 2", "with number 4"]


def test_a_test_of_many_cases_has_some() -> None:
    with pytest.raises(AssertionError):
        with_each([])
