"""Commands that are recorded without a place among the drives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from libs.handling.acceptance import Acceptance
from libs.handling.answers import CommandAnswers
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.replier import Replier
from tests.unit.handling.test_outage_log import a_command


class FullDriver:
    """In place of `Driver`: has no place as a command arrives.

    Args:
        has_place_then: whether there is one once it is recorded.
    """

    lease_seconds = 10.0

    def __init__(self, *, has_place_then: bool) -> None:
        self._has_place_then = has_place_then
        self.wakes = 0

    @contextmanager
    def place(self, _: str) -> Iterator[bool]:
        yield False

    def has_place(self, _: str) -> bool:
        return self._has_place_then

    def wake(self) -> None:
        self.wakes += 1


class Recording:
    """In place of `GroupCommit`: each command is new and waits."""

    async def commit(self, *_: object) -> None: ...


@pytest.mark.parametrize("has_place_then", [True, False])
async def test_a_command_that_waits_for_a_place_is_looked_for_once_there_is_one(
    has_place_then: bool,
) -> None:
    driver = FullDriver(has_place_then=has_place_then)
    accepting = Acceptance(
        "onboarding",
        None,  # type: ignore[arg-type]
        MessageSealer("onboarding", {}),
        CommandAnswers(Replier("onboarding")),
        driver,  # type: ignore[arg-type]
        Recording(),  # type: ignore[arg-type]
        None,
        frozenset(),
        frozenset(),
    )

    await accepting.accept(a_command(), None, False)

    assert driver.wakes == has_place_then
