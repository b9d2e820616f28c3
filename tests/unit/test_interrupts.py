from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from tests.support.interrupts import keep_interrupts


class Formatted:
    times = 0

    def __repr__(self) -> str:
        self.times += 1
        return "formatted"


@pytest.fixture(autouse=True)
def of_python() -> Iterator[None]:
    """As an event loop leaves it in which SIGINT was handled."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_result_of_a_coroutine_is_not_formatted_at_its_end() -> None:
    result = Formatted()

    async def give() -> Formatted:
        return result

    keep_interrupts()
    asyncio.run(give())

    assert result.times == 0


def test_ctrl_c_is_a_keyboard_interrupt() -> None:
    keep_interrupts()

    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
