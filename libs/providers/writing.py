"""The rule by which a write has one effect at a provider, however often it is attempted.

    intent, key and time of the first send committed ──▶ write_once ──▶ outcome committed
                                                             ▲                │
                                                             └── Unknown: attempted again later

1. The first attempt sends. Its refusal is final.
2. A later attempt looks the key up first, and sends only if the provider does not know it.
3. A refusal of a later send does not decide on an earlier send that may still be on its way. It is final only when the
   provider stored it under the key, or when no earlier send can arrive any more. Where the provider does not show
   whether one arrived, it is left to an operator.
4. Without keys, nothing is sent while an earlier send may still be on its way.
5. Once the provider may have forgotten the key, the write is never sent again: it is looked up, then left to an
   operator.
6. A write that may have been called off in a history that was lost is looked up, and not sent.

The caller commits, before `write_once` or in `before_send`, that a send begins (`Attempt`); no transaction is open
during a call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar
from uuid import UUID

import structlog

from libs.providers.outcomes import Absent, Accepted, Finding, NotSent, Outcome, Refused, Unknown

KEY_MARGIN_SECONDS = 60.0
"""The provider counts a key's age from its arrival, by a clock that may differ by this much from the database's."""

AnswerT_co = TypeVar("AnswerT_co", covariant=True)
AnswerT = TypeVar("AnswerT")

_log = structlog.get_logger("providers")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider promises about writes.

    Args:
        keys_remembered_seconds: how long an idempotency key is remembered, at least; None: for ever.
        longest_transit_seconds: the longest time from the sending of a request until it takes effect.
        takes_keys: False: a copy that arrives late has its effect once more, and would undo a later write. None is sent
            while an earlier one may be on its way.
        shows_writes: False: a write that arrived may be looked up in vain, as where the provider shows a part of what
            was written. The refusal of a later send then says nothing about an earlier one, however old.
    """

    keys_remembered_seconds: float | None
    longest_transit_seconds: float
    takes_keys: bool = True
    shows_writes: bool = True

    def within(self, hours: float | None, transit_seconds: float) -> Capabilities:
        """These with an operator's settings: keys are remembered for `hours`; None: as the provider promises."""
        remembered = self.keys_remembered_seconds if hours is None else hours * 3600
        return replace(
            self, keys_remembered_seconds=remembered, longest_transit_seconds=transit_seconds
        )

    def may_resend(self, first_sent_seconds_ago: float, send_seconds: float) -> bool:
        """Whether a send that takes `send_seconds` still arrives while the provider knows the key of the first one.

        A margin of a minute, or of a tenth of a shorter memory, allows for a provider's clock.
        """
        if self.keys_remembered_seconds is None:
            return True
        margin = min(KEY_MARGIN_SECONDS, self.keys_remembered_seconds / 10)
        return first_sent_seconds_ago + send_seconds + margin < self.keys_remembered_seconds


@dataclass(frozen=True, slots=True)
class Earlier:
    """Sends of the same write before this attempt, by the database's clock. Ages in seconds.

    Args:
        first_sent_seconds_ago: of the very first send.
        last_sent_seconds_ago: of the last send whose outcome is not known.
    """

    first_sent_seconds_ago: float
    last_sent_seconds_ago: float

    def seconds_in_transit(self, transit_seconds: float) -> float:
        """For how long the last send may still arrive, when a send does within `transit_seconds` of its beginning."""
        return max(0.0, transit_seconds - self.last_sent_seconds_ago)


def with_lost_history(known: Earlier | None, lost: Earlier | None) -> Earlier | None:
    """The known sends, and those that a database that went back may have lost."""
    if known is None or lost is None:
        return known or lost
    return Earlier(
        max(known.first_sent_seconds_ago, lost.first_sent_seconds_ago),
        min(known.last_sent_seconds_ago, lost.last_sent_seconds_ago),
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a write.

    Args:
        key: the idempotency key, the same at every attempt.
        deadline: Unix seconds; the attempt ends by then.
        send_seconds: how long the attempt may take from its beginning to `deadline`.
        earlier: None when certainly nothing was sent under the key before.
        only_looked_up: the write may have been called off in a history that was lost. `earlier` is not None then.
        before_send: called with the key before a send of which the provider did not know the key: the caller commits
            then that a send begins. What it raises ends the attempt, and nothing is sent.
    """

    key: UUID
    deadline: float
    send_seconds: float
    earlier: Earlier | None
    only_looked_up: bool = False
    before_send: Callable[[UUID], Awaitable[None]] | None = None


class ProviderWrite(Protocol[AnswerT_co]):
    """One write, as an adapter makes it for one provider."""

    @property
    def operation(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def finds_only_sends(self) -> bool:
        """Whether what `find` accepts was certainly sent. False where it reads a state that may be there without a send
        of this write.
        """
        ...

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT_co]:
        """Send the write once, under the key."""
        ...

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT_co]:
        """Look the key up; nothing is sent."""
        ...


async def write_once(write: ProviderWrite[AnswerT], attempt: Attempt) -> Outcome[AnswerT]:
    """Attempt a write by the rule above.

    `NotSent` is returned by a first attempt only: later, an earlier send may be on its way.
    """
    if attempt.earlier is None:
        return await write.send(attempt.key, attempt.deadline)
    found = await write.find(attempt.key, attempt.deadline)
    if not isinstance(found, Absent):
        return _looked_up(found)
    if attempt.only_looked_up:
        return Unknown("it may have been called off in a history that was lost", sent=False)
    if not write.capabilities.may_resend(
        attempt.earlier.first_sent_seconds_ago, attempt.send_seconds
    ):
        return Unknown("the provider may have forgotten the key", sent=False, needs_operator=True)
    if not write.capabilities.takes_keys and _may_arrive(write, attempt, attempt.earlier):
        return Unknown("an earlier send may still arrive", sent=False)
    if attempt.before_send is not None:
        await attempt.before_send(attempt.key)
    outcome = await write.send(attempt.key, attempt.deadline)
    match outcome:
        case Refused():
            return await _confirmed(write, attempt, attempt.earlier, outcome)
        case NotSent(why):
            return Unknown(why, sent=False)
        case _:
            return outcome


async def _confirmed(
    write: ProviderWrite[AnswerT], attempt: Attempt, earlier: Earlier, refused: Refused
) -> Outcome[AnswerT]:
    """The outcome of a later send that was refused: see the third rule."""
    found = await write.find(attempt.key, attempt.deadline)
    if not isinstance(found, Absent):
        return _looked_up(found)
    if not write.capabilities.shows_writes:
        return Unknown("an earlier send may have arrived", sent=False, needs_operator=True)
    if not _may_arrive(write, attempt, earlier):
        return refused
    _log.warning(
        "refusal_does_not_bind_earlier_send", operation=write.operation, key=str(attempt.key)
    )
    return Unknown("the refusal does not bind an earlier send", sent=False)


def _may_arrive(write: ProviderWrite[AnswerT], attempt: Attempt, earlier: Earlier) -> bool:
    """Whether an earlier send may be on its way still.

    The age is counted from the commit before the attempt, which may have sent as late as at its end.
    """
    transit_seconds = write.capabilities.longest_transit_seconds + attempt.send_seconds
    return earlier.seconds_in_transit(transit_seconds) > 0


def _looked_up(found: Accepted[AnswerT] | Refused | Unknown) -> Outcome[AnswerT]:
    if isinstance(found, Unknown):
        return Unknown(found.why, sent=False, needs_operator=found.needs_operator)
    return replace(found, was_found=True) if isinstance(found, Accepted) else found
