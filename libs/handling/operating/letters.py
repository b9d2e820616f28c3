"""Dead letters of a service's own queues: list, show, have them accepted anew, discard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import structlog

from libs.contracts import errors as e
from libs.contracts.ids import parse_id
from libs.contracts.operating import dead_letters as contract
from libs.contracts.operating.pages import Listed, Order, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.dead_letters import (
    MAX_LOOKED_AT,
    DeadLetter,
    DeadLetters,
    NotReplayable,
    Removed,
    open_dead_letters,
)
from libs.messaging.senders import NO_SENDER, senders_of_commands
from libs.messaging.topology import dead_queue
from libs.persistence import inbox_housekeeping
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database

LONGEST_BODY = 64 * 1024
MOST_SHOWN = 20
MAY_BE_FORGOTTEN = (
    f"it was sent more than {inbox_housekeeping.RETENTION_HOURS} hours ago, and its caller may have sent it again"
    " since. What was carried out then is forgotten by now, but for wires, and would be carried out once more: find"
    " out whether it was, and replay it with `apply_again` where it has to be"
)
THEY_STAY = "The broker cannot be reached: the letters stay."
UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)
"""In place of the time at which a letter died, where the broker does not tell it."""

Append = Callable[[AsyncConnection], Awaitable[None]]
"""Appends to the audit what an operator does, in the transaction that does it, as the last of it."""
AcceptAnew = Callable[[DeadLetter, Append], Awaitable[None]]
"""Records a letter and what is to be appended in one transaction of the service's database; returns once that is
committed. Recording a letter twice has one effect.

Raises:
    NotReplayable: it can never be accepted.
"""
Before = Callable[[DeadLetter], Awaitable[None]]
"""See `DeadLetters.remove`."""


@dataclass(frozen=True, slots=True)
class OwnLetters:
    """Where a service's letters are, and what accepts them anew.

    Args:
        amqp_url: with the service's own user.
        accept: by queue, without `.dead`.
    """

    amqp_url: str = field(repr=False)
    ca_file: str | None
    accept: Mapping[str, AcceptAnew]
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(map(dead_queue, self.accept))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DeadLetters]:
        """Open the dead queues for looking.

        Raises:
            Unavailable: the broker is not reached, or lost.
        """
        try:
            async with self._connected() as letters:
                yield letters
        except BROKER_ERRORS as error:
            _note_unreachable(error)
            raise e.Unavailable(THEY_STAY) from error

    async def remove(
        self,
        queues: Sequence[str],
        wanted: Callable[[DeadLetter], bool],
        before: Before,
    ) -> Sequence[Removed]:
        """As `DeadLetters.remove`, of each of the queues.

        Raises:
            Unavailable: the broker is not reached, or was lost before anything was changed.
            OutcomePending: the broker or the database was lost once a letter may have been carried out or removed.
        """
        tracked = _Tracked(before)
        try:
            async with self._connected() as letters:
                return [await letters.remove(queue, wanted, tracked) for queue in queues]
        except BROKER_ERRORS as error:
            if error is not tracked.error:  # else it is the database's
                _note_unreachable(error)
            if tracked.may_have_changed:
                raise e.OutcomePending(e.LOOK_BEFORE_REPEATING) from error
            raise e.Unavailable(THEY_STAY) from error

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[DeadLetters]:
        """The dead queues on a connection of their own, so that an error there does not end the service's session.

        In this process one reader is at work at a time, since a reader does not see the letters that another one has
        taken. A reader in another replica may still hide letters for a moment.

        Raises:
            BROKER_ERRORS
        """
        async with (
            self._reading,
            open_dead_letters(self.amqp_url, self.ca_file) as letters,
        ):
            yield letters


class _Tracked:
    """A `before` of which is known whether it may have changed something."""

    def __init__(self, before: Before) -> None:
        self._before = before
        self.may_have_changed = False
        """It began for a letter, and did not end in NotReplayable."""
        self.error: Exception | None = None
        """By which it ended for a letter."""

    async def __call__(self, letter: DeadLetter) -> None:
        had_changed, self.may_have_changed = self.may_have_changed, True
        try:
            await self._before(letter)
        except NotReplayable:
            self.may_have_changed = had_changed
            raise
        except Exception as error:
            self.error = error
            raise


def _note_unreachable(error: Exception) -> None:
    structlog.get_logger("dead-letters").warning("broker_unreachable", error=type(error).__name__)


class Letters:
    """The handlers of one service."""

    def __init__(self, service: str, database: Database, letters: OwnLetters) -> None:
        self._service = service
        self._database = database
        self._letters = letters

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            contract.LIST_OF[self._service].name: self.list,
            contract.FIND_OF[self._service].name: self.find,
            contract.REPLAY_OF[self._service].name: self.replay,
            contract.DISCARD_OF[self._service].name: self.discard,
        }

    async def list(self, _: Principal, command: contract.ListDeadLetters, __: float) -> Result:
        place, newest = command.place, command.order is Order.NEWEST
        found = sorted(
            (self._shown(letter) for letter in await self._look(command.queue, lambda _: True)),
            key=_key,
            reverse=newest,
        )
        if place is not None:
            after = (place.at, place.id)
            found = [one for one in found if (_key(one) < after if newest else _key(one) > after)]
        items, following = cut(found, command.limit, place_of)
        return Result(data=Listed[contract.DeadLetter](items=[*items], next=following))

    async def find(self, _: Principal, command: contract.FindDeadLetters, __: float) -> Result:
        found = await self._look(
            command.queue,
            lambda one: one.has_id(command.letter_id),
            limit=MOST_SHOWN,
            body_bytes=LONGEST_BODY,
        )
        return Result(
            data=contract.DeadLettersWithBody(
                letters=[
                    contract.DeadLetterWithBody(
                        **dict(self._shown(letter)),
                        body=letter.body.decode("utf-8", "replace"),
                    )
                    for letter in found[:MOST_SHOWN]
                ]
            )
        )

    async def replay(
        self, principal: Principal, command: contract.ReplayDeadLetters, _: float
    ) -> Result:
        """A crash between the acceptance of a message and the removal of its letter leaves it, to be replayed again."""

        async def before(letter: DeadLetter) -> None:
            if not command.apply_again:
                await self._refuse_what_may_be_forgotten(letter)
            accept = self._letters.accept[letter.queue.removesuffix(dead_queue(""))]
            await accept(letter, self._entry(principal, "dead.replay", command, letter))

        return await self._remove(command, before)

    async def discard(
        self, principal: Principal, command: contract.RemoveDeadLetters, _: float
    ) -> Result:
        async def before(letter: DeadLetter) -> None:
            async with self._database.transaction() as connection:
                await self._entry(principal, "dead.discard", command, letter)(connection)

        return await self._remove(command, before)

    async def _refuse_what_may_be_forgotten(self, letter: DeadLetter) -> None:
        """Raises NotReplayable: the command may have come by another message since, and be finished and purged."""
        envelope = letter.envelope
        allowed = senders_of_commands(self._service).get(
            envelope.operation if envelope is not None else "", NO_SENDER
        )
        if envelope is None or letter.sender not in allowed or parse_id(envelope.id) is None:
            return  # what accepts letters says why it does not accept this one
        async with self._database.transaction() as connection:
            may_be = await inbox_housekeeping.may_be_purged(
                connection, envelope.id, sent_at=letter.sent_at
            )
        if may_be:
            raise NotReplayable(MAY_BE_FORGOTTEN)

    async def _look(
        self,
        queue: str | None,
        wanted: Callable[[DeadLetter], bool],
        *,
        limit: int = MAX_LOOKED_AT,
        body_bytes: int = 0,
    ) -> Sequence[DeadLetter]:
        """The wanted letters of the queue, or of every queue of the service; at most `limit` of each."""
        async with self._letters.opened() as letters:
            return [
                letter
                for name in self._queues(queue)
                for letter in await letters.look(name, wanted, limit=limit, body_bytes=body_bytes)
            ]

    async def _remove(self, command: contract.RemoveDeadLetters, before: Before) -> Result:
        wanted = {*command.letter_ids}
        done = await self._letters.remove(
            self._queues(command.queue), lambda one: one.id in wanted, before
        )
        return Result(
            data=contract.RemovedDeadLetters(
                removed=[self._shown(letter) for one in done for letter in one.removed],
                left=[
                    contract.LeftLetter(**dict(self._shown(letter)), why=why)
                    for one in done
                    for letter, why in one.left
                ],
            )
        )

    @staticmethod
    def _entry(
        principal: Principal,
        action: str,
        command: contract.RemoveDeadLetters,
        letter: DeadLetter,
    ) -> Append:
        return partial(
            record,
            principal=principal,
            action=action,
            reason=command.reason,
            queue=letter.queue,
            letter_id=letter.id,
            command_id=letter.envelope.id if letter.envelope else None,
        )

    def _queues(self, wanted: str | None) -> tuple[str, ...]:
        """The dead queues of this service that are wanted; none for a queue of another service."""
        return tuple(name for name in self._letters.queues if wanted in (None, name, _alive(name)))

    def _shown(self, letter: DeadLetter) -> contract.DeadLetter:
        envelope = letter.envelope
        return contract.DeadLetter(
            service=self._service,
            queue=letter.queue,
            id=letter.id,
            command_id=envelope.id if envelope else None,
            operation=envelope.operation if envelope else None,
            event_type=letter.event_type,
            sender=letter.sender,
            tenant=envelope.principal.tenant if envelope else None,
            reason=letter.reason,
            because=letter.because,
            sent_at=letter.sent_at,
            died_at=letter.died_at,
        )


def place_of(letter: contract.DeadLetter) -> Place:
    """Where the letter stands in its list."""
    return Place(letter.died_at or UNKNOWN_TIME, f"{letter.id} {letter.queue}")


def _key(letter: contract.DeadLetter) -> tuple[datetime, str]:
    place = place_of(letter)
    return place.at, place.id


def _alive(queue: str) -> str:
    return queue.removesuffix(dead_queue(""))
