"""Many small cases as one test: each test takes 5 ms to be collected by every worker, run and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def with_each(
    cases: Iterable[Case], name: Callable[[Case], str] = str
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Makes a test of a check: it runs with each case, also after one has failed, and says all that have failed."""
    cases = tuple(cases)
    assert cases

    def decorated(check: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            failures: list[BaseException] = []
            for case in cases:
                try:
                    check(case)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"with {name(case)}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases", failures)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorated
