from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from services.webhook_dispatcher.adapters.lookups import (
    Lookups,
    NotLookedUp,
    NotResolved,
    NotResolvedInTime,
)
from tests.support.names import Names
from tests.support.pace import pace, waiting_pace
from tests.support.waiting import eventually

TENANT = "acme"
QUICK = [f"quick-{number}.example.com" for number in range(20)]


class Silent:
    """Names beginning with `silent` have an answer only when the test lets go of them."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.names = Names({host: [["1.1.1.1"]] for host in QUICK})
        self.names.before = self._wait

    def _wait(self, host: str) -> None:
        if host.startswith("silent"):
            self.gate.wait(30)


@pytest.fixture
def silent() -> Silent:
    return Silent()


@pytest.fixture
async def patient(silent: Silent) -> AsyncIterator[Lookups]:
    opened = Lookups(seconds=20, getaddrinfo=silent.names)
    yield opened
    silent.gate.set()
    await opened.close()


@pytest.fixture
async def lookups(silent: Silent) -> AsyncIterator[Lookups]:
    opened = Lookups(
        seconds=1, at_once=16, slow_at_once=4, slow_seconds=0.5, getaddrinfo=silent.names
    )
    yield opened
    silent.gate.set()
    await opened.close()


async def test_a_name_is_looked_up_once_however_many_ask_at_the_same_time(
    silent: Silent, patient: Lookups
) -> None:
    answers = await asyncio.gather(*(patient.addresses(QUICK[0], TENANT) for _ in range(50)))

    assert answers == [["1.1.1.1"]] * 50
    assert silent.names.asked == [QUICK[0]]


async def test_an_answer_is_not_kept(silent: Silent, patient: Lookups) -> None:
    silent.names.answers["moving.example.com"] = [["1.1.1.1"], ["1.0.0.1"]]

    assert await patient.addresses("moving.example.com", TENANT) == ["1.1.1.1"]
    assert await patient.addresses("moving.example.com", TENANT) == ["1.0.0.1"]


async def test_a_name_without_an_address_is_not_resolved(patient: Lookups) -> None:
    with pytest.raises(NotResolved):
        await patient.addresses("nowhere.example.com", TENANT)


async def test_the_scope_of_an_address_is_told(silent: Silent, patient: Lookups) -> None:
    silent.names.always("linked.example.com", "fe80::1%3")

    assert await patient.addresses("linked.example.com", TENANT) == ["fe80::1%3"]


async def test_a_silent_name_is_given_up_in_time_and_holds_one_thread(
    silent: Silent, lookups: Lookups
) -> None:
    asked = [lookups.addresses("silent.example.com", TENANT) for _ in range(20)]
    async with asyncio.timeout(10 * pace()):
        answers = await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(answer, NotResolvedInTime) for answer in answers)
    assert silent.names.asked == ["silent.example.com"]


async def test_names_that_were_silent_before_leave_the_threads_to_the_others(
    silent: Silent, lookups: Lookups
) -> None:
    names = [f"silent-{number}.example.com" for number in range(4)]

    async def ask_all() -> None:
        asked = [lookups.addresses(name, TENANT) for name in names]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(answer, NotResolved) for answer in answers)

    await ask_all()
    silent.gate.set()
    await eventually("the lookups end", _none_under_way(lookups))
    silent.gate.clear()

    await ask_all()
    answers = await asyncio.gather(*(lookups.addresses(name, TENANT) for name in QUICK))

    assert answers == [["1.1.1.1"]] * len(QUICK)


async def test_silent_names_of_one_tenant_leave_the_threads_to_others(
    silent: Silent, lookups: Lookups
) -> None:
    names = [f"silent-{number}.example.com" for number in range(40)]

    asked = [asyncio.create_task(lookups.addresses(name, "loud")) for name in names]
    await eventually("one of them has a thread", lambda: _is_asked(silent))
    answers = await asyncio.gather(*(lookups.addresses(name, TENANT) for name in QUICK))
    silent.gate.set()
    await asyncio.gather(*asked, return_exceptions=True)

    assert answers == [["1.1.1.1"]] * len(QUICK)


async def test_a_tenant_does_not_wait_for_the_thread_of_another_that_asks_for_the_same_name(
    silent: Silent, lookups: Lookups
) -> None:
    names = [f"silent-{number}.example.com" for number in range(8)]

    asked = [asyncio.create_task(lookups.addresses(name, "loud")) for name in [*names, QUICK[0]]]
    await eventually("one of them has a thread", lambda: _is_asked(silent))
    answer = await lookups.addresses(QUICK[0], TENANT)
    silent.gate.set()
    await asyncio.gather(*asked, return_exceptions=True)

    assert answer == ["1.1.1.1"]


async def _is_asked(silent: Silent) -> bool:
    return bool(silent.names.asked)


async def test_what_nobody_waits_for_any_more_is_not_looked_up(
    silent: Silent, lookups: Lookups
) -> None:
    names = [f"silent-{number}.example.com" for number in range(8)]

    asked = [lookups.addresses(name, TENANT) for name in names]
    await asyncio.gather(*asked, return_exceptions=True)
    silent.gate.set()
    await eventually("the lookups end", _none_under_way(lookups))

    assert sorted(silent.names.asked) == names[:4]


def _none_under_way(lookups: Lookups):  # type: ignore[no-untyped-def]
    async def none() -> bool:
        return not lookups.under_way

    return none


async def test_fifty_names_that_fall_silent_at_one_moment_delay_no_other(silent: Silent) -> None:
    lookups = Lookups(getaddrinfo=silent.names)

    names = [*(f"silent-{number}.example.com" for number in range(50)), QUICK[0]]
    *hanging, quick = [asyncio.create_task(lookups.addresses(name, TENANT)) for name in names]
    answer = await quick
    was_first = not any(task.done() for task in hanging)
    silent.gate.set()
    await asyncio.gather(*hanging, return_exceptions=True)
    await lookups.close()

    assert answer == ["1.1.1.1"]
    assert was_first


async def test_a_name_for_which_no_thread_is_free_is_told_apart_from_one_that_is_silent(
    silent: Silent,
) -> None:
    # The name that has the thread is told so in the next turn of the loop.
    lookups = Lookups(
        seconds=1, thread_seconds=0.2 * waiting_pace(), at_once=1, getaddrinfo=silent.names
    )

    asked = [lookups.addresses(name, TENANT) for name in ("silent.example.com", QUICK[0])]
    hung, unlucky = await asyncio.gather(*asked, return_exceptions=True)
    silent.gate.set()
    await lookups.close()

    assert isinstance(hung, NotResolvedInTime)
    assert isinstance(unlucky, NotLookedUp)
