"""The rule of writing once, on a provider whose answers each test decides."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest

from libs.providers.outcomes import (
    Absent,
    Accepted,
    Finding,
    NotSent,
    Outcome,
    Reason,
    Refused,
    Unknown,
)
from libs.providers.writing import Attempt, Capabilities, Earlier, write_once

DAY = 24 * 3600.0
TRANSIT_SECONDS = 60.0
SEND_SECONDS = 10.0
SETTLED_SECONDS = TRANSIT_SECONDS + SEND_SECONDS
LIKE_THE_SANDBOX = Capabilities(DAY, TRANSIT_SECONDS)
NO = Refused(Reason.INSUFFICIENT_FUNDS, "insufficient_funds")


@dataclass
class Scripted:
    """Answers sends and questions one after the other, and notes which came."""

    answers: list[Outcome[str] | Finding[str]]
    capabilities: Capabilities = LIKE_THE_SANDBOX
    operation: str = "open_account"
    finds_only_sends: bool = True
    calls: list[str] = field(default_factory=list)

    async def send(self, key: UUID, deadline: float) -> Outcome[str]:
        self.calls.append("send")
        answer = self.answers.pop(0)
        assert not isinstance(answer, Absent)
        return answer

    async def find(self, key: UUID, deadline: float) -> Finding[str]:
        self.calls.append("find")
        answer = self.answers.pop(0)
        assert not isinstance(answer, NotSent)
        return answer


def attempt(first_sent: float | None = None, last_sent: float | None = None) -> Attempt:
    """An attempt; `first_sent` and `last_sent` so many seconds ago."""
    earlier = None
    if first_sent is not None:
        earlier = Earlier(first_sent, first_sent if last_sent is None else last_sent)
    return Attempt(uuid4(), time.time() + SEND_SECONDS, SEND_SECONDS, earlier)


@pytest.mark.parametrize("outcome", [Accepted("acc_1"), NO, NotSent("refused"), Unknown("500")])
async def test_a_first_attempt_sends_and_takes_what_comes(outcome: Outcome[str]) -> None:
    write = Scripted([outcome])

    found = await write_once(write, attempt())

    assert (found, write.calls) == (outcome, ["send"])


@pytest.mark.parametrize("held", [Accepted("acc_1"), NO])
async def test_a_later_attempt_takes_what_the_provider_holds_and_sends_nothing(
    held: Accepted[str] | Refused,
) -> None:
    write = Scripted([held])

    found = await write_once(write, attempt(first_sent=5))

    assert (found, write.calls) == (held, ["find"])


async def test_a_later_attempt_sends_what_the_provider_does_not_hold() -> None:
    write = Scripted([Absent(), Accepted("acc_1")])

    found = await write_once(write, attempt(first_sent=5))

    assert (found, write.calls) == (Accepted("acc_1"), ["find", "send"])


async def test_a_provider_that_cannot_be_asked_is_sent_nothing() -> None:
    write = Scripted([Unknown("timed_out")])

    found = await write_once(write, attempt(first_sent=5))

    assert (found, write.calls) == (Unknown("timed_out", sent=False), ["find"])


@pytest.mark.parametrize("held", [Absent(), Accepted("acc_1"), NO])
async def test_what_may_have_been_called_off_is_only_looked_up(held: Finding[str]) -> None:
    write = Scripted([held])

    found = await write_once(write, replace(attempt(first_sent=5), only_looked_up=True))

    called_off = Unknown("it may have been called off in a history that was lost", sent=False)
    assert found == (called_off if isinstance(held, Absent) else held)
    assert write.calls == ["find"]


@pytest.mark.parametrize("takes_keys", [True, False])
async def test_without_keys_nothing_is_sent_while_an_earlier_send_may_arrive(
    takes_keys: bool,
) -> None:
    capabilities = Capabilities(None, TRANSIT_SECONDS, takes_keys=takes_keys)
    young, old = (Scripted([Absent(), Accepted("acc_1")], capabilities) for _ in range(2))

    soon = await write_once(young, attempt(first_sent=DAY, last_sent=SETTLED_SECONDS - 1))
    later = await write_once(old, attempt(first_sent=DAY, last_sent=SETTLED_SECONDS))

    assert soon == (
        Accepted("acc_1") if takes_keys else Unknown("an earlier send may still arrive", sent=False)
    )
    assert young.calls == (["find", "send"] if takes_keys else ["find"])
    assert later == Accepted("acc_1")


async def test_a_refused_resend_is_no_refusal_while_an_earlier_send_may_arrive() -> None:
    write = Scripted([Absent(), NO, Absent()])

    found = await write_once(write, attempt(first_sent=SETTLED_SECONDS - 1))

    assert isinstance(found, Unknown)
    assert not found.sent
    assert not found.needs_operator


async def test_a_refused_resend_gives_way_to_the_earlier_send_that_arrived_meanwhile() -> None:
    write = Scripted([Absent(), NO, Accepted("acc_1")])

    found = await write_once(write, attempt(first_sent=5))

    assert (found, write.calls) == (Accepted("acc_1"), ["find", "send", "find"])


async def test_a_refused_resend_that_the_provider_keeps_is_a_refusal() -> None:
    write = Scripted([Absent(), NO, NO])

    assert await write_once(write, attempt(first_sent=5)) == NO


async def test_a_refused_resend_is_a_refusal_once_no_earlier_send_can_arrive() -> None:
    write = Scripted([Absent(), NO, Absent()])

    assert await write_once(write, attempt(first_sent=SETTLED_SECONDS)) == NO


async def test_a_refused_resend_is_left_to_an_operator_where_an_earlier_send_is_not_shown() -> None:
    capabilities = Capabilities(None, TRANSIT_SECONDS, takes_keys=False, shows_writes=False)
    write = Scripted([Absent(), NO, Absent()], capabilities)

    found = await write_once(write, attempt(first_sent=SETTLED_SECONDS))

    assert isinstance(found, Unknown)
    assert found.needs_operator
    assert not found.sent


async def test_the_last_send_of_unknown_outcome_counts_and_not_the_first() -> None:
    write = Scripted([Absent(), NO, Absent()])

    found = await write_once(write, attempt(first_sent=3600, last_sent=SETTLED_SECONDS - 1))

    assert isinstance(found, Unknown)


async def test_a_resend_that_was_not_sent_leaves_the_earlier_one_unknown() -> None:
    write = Scripted([Absent(), NotSent("circuit_open")])

    found = await write_once(write, attempt(first_sent=5))

    assert found == Unknown("circuit_open", sent=False)


@pytest.mark.parametrize("seconds_left", [-1, 5, 69])
async def test_nothing_is_sent_that_may_arrive_after_the_key_is_forgotten(
    seconds_left: float,
) -> None:
    write = Scripted([Absent()])

    found = await write_once(write, attempt(first_sent=DAY - seconds_left))

    assert isinstance(found, Unknown)
    assert found.needs_operator
    assert write.calls == ["find"]


@pytest.mark.parametrize("before", [[], [Absent(), NO]], ids=["before a send", "after a refusal"])
async def test_what_a_provider_has_instead_of_the_write_is_left_to_an_operator(
    before: list[Outcome[str] | Finding[str]],
) -> None:
    another = Unknown("another write under the key", needs_operator=True)
    write = Scripted([*before, another])

    found = await write_once(write, attempt(first_sent=5))

    assert found == replace(another, sent=False)


async def test_what_is_found_after_the_key_memory_still_counts() -> None:
    write = Scripted([Accepted("acc_1")])

    assert await write_once(write, attempt(first_sent=10 * DAY)) == Accepted("acc_1")


async def test_a_provider_that_remembers_for_ever_is_sent_to_at_any_time() -> None:
    write = Scripted([Absent(), Accepted("acc_1")], Capabilities(None, TRANSIT_SECONDS))

    assert await write_once(write, attempt(first_sent=400 * DAY)) == Accepted("acc_1")
