"""What every service has for operators, asked of the services side by side and merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from libs.contracts import errors as e
from libs.contracts.model import Command
from libs.contracts.operating import (
    audit,
    commands,
    dead_letters,
    feeds,
    overview,
    resealing,
    restores,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.letters import place_of as place_of_letter
from libs.handling.operating.open_commands import place_of as place_of_command
from libs.handling.queries import QueryHandler
from services.gateway.operating.asking import Services, merged

C = TypeVar("C", bound=Command)


class OfServices:
    """The handlers."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            commands.LIST_COMMANDS.name: self.list_commands,
            commands.GET_COMMAND.name: self.get_command,
            commands.RETRY_COMMAND.name: self._passed_on(
                commands.RETRY_OF, commands.DecideOnCommand
            ),
            commands.ABANDON_COMMAND.name: self._passed_on(
                commands.ABANDON_OF, commands.DecideOnCommand
            ),
            dead_letters.LIST_DEAD_LETTERS.name: self.list_dead_letters,
            dead_letters.GET_DEAD_LETTERS.name: self.get_dead_letters,
            dead_letters.REPLAY_DEAD_LETTER.name: self.replay_dead_letter,
            dead_letters.DISCARD_DEAD_LETTER.name: self.discard_dead_letter,
            dead_letters.REPLAY_DEAD_LETTERS.name: self._passed_on(
                dead_letters.REPLAY_OF, dead_letters.ReplayDeadLetters
            ),
            dead_letters.DISCARD_DEAD_LETTERS.name: self._passed_on(
                dead_letters.DISCARD_OF, dead_letters.RemoveDeadLetters
            ),
            feeds.LIST_FEEDS.name: self.list_feeds,
            feeds.GET_FEED.name: self._passed_on(feeds.FIND_OF, feeds.FindFeed),
            feeds.SKIP_ENTRY.name: self._passed_on(feeds.SKIP_OF, feeds.SkipEntry),
            feeds.RESTART_FEED.name: self._passed_on(feeds.RESTART_OF, feeds.RestartFeed),
            restores.LIST_RESTORES.name: self.list_restores,
            restores.DECLARE_RESTORE.name: self._passed_on(
                restores.DECLARE_OF, restores.DecideOnRestore
            ),
            restores.CLOSE_RESTORES.name: self._passed_on(
                restores.CLOSE_OF, restores.CloseRestores
            ),
            audit.LIST_AUDIT.name: self._passed_on(audit.LIST_OF, audit.ListAudit),
            resealing.RESEAL.name: self._passed_on(resealing.RESEAL_OF, resealing.Reseal),
            overview.GET_OVERVIEW.name: self.get_overview,
        }

    async def list_commands(
        self, principal: Principal, command: commands.ListCommandsOf, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            commands.LIST_OF,
            principal,
            _inner(commands.ListCommands, command),
            deadline,
            only=command.service,
        )
        is_parked = command.state is commands.CommandState.PARKED
        return Result(
            data=merged(
                answers,
                command.limit,
                command.order,
                lambda item: place_of_command(item, by_parked=is_parked),
            )
        )

    async def get_command(
        self, principal: Principal, command: commands.FindCommandOf, deadline: float
    ) -> Result:
        try:
            found = await self._services.ask_for_one(
                commands.FIND_OF,
                principal,
                _inner(commands.FindCommand, command),
                deadline,
                only=command.service,
            )
        except e.NotFound:
            raise e.NotFound(f"There is no unfinished command {command.command_id}.") from None
        return Result(data=found)

    async def list_dead_letters(
        self, principal: Principal, command: dead_letters.ListDeadLettersOf, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            dead_letters.LIST_OF,
            principal,
            _inner(dead_letters.ListDeadLetters, command),
            deadline,
            only=command.service,
        )
        return Result(data=merged(answers, command.limit, command.order, place_of_letter))

    async def get_dead_letters(
        self, principal: Principal, command: dead_letters.FindDeadLettersOf, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            dead_letters.FIND_OF,
            principal,
            _inner(dead_letters.FindDeadLetters, command),
            deadline,
            only=command.service,
        )
        letters = [letter for found in answers.by_service.values() for letter in found.letters]
        if not letters and not answers.unreachable:
            raise _no_letter(command.letter_id)
        return Result(
            data=dead_letters.FoundDeadLetters(letters=letters, unreachable=answers.unreachable)
        )

    async def replay_dead_letter(
        self, principal: Principal, command: dead_letters.ReplayDeadLetterOf, deadline: float
    ) -> Result:
        replay = dead_letters.ReplayDeadLetters(
            letter_ids=[command.letter_id],
            queue=command.queue,
            reason=command.reason,
            apply_again=command.apply_again,
        )
        return await self._remove(dead_letters.REPLAY_OF, principal, command, replay, deadline)

    async def discard_dead_letter(
        self, principal: Principal, command: dead_letters.RemoveDeadLetterOf, deadline: float
    ) -> Result:
        discard = dead_letters.RemoveDeadLetters(
            letter_ids=[command.letter_id], queue=command.queue, reason=command.reason
        )
        return await self._remove(dead_letters.DISCARD_OF, principal, command, discard, deadline)

    async def _remove(
        self,
        rows: Mapping[str, Operation],
        principal: Principal,
        command: dead_letters.RemoveDeadLetterOf,
        asked: dead_letters.RemoveDeadLetters,
        deadline: float,
    ) -> Result:
        done = await self._services.ask_one(rows, command.service, principal, asked, deadline)
        if done.left:
            others = f" {len(done.removed)} others of this id are gone." if done.removed else ""
            raise e.InvalidState(f"The letter stays: {done.left[0].why}.{others}")
        if not done.removed:
            raise _no_letter(command.letter_id)
        return Result(data=done)

    async def list_feeds(
        self, principal: Principal, command: feeds.ListFeedsOf, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            feeds.LIST_OF,
            principal,
            _inner(feeds.ListFeeds, command),
            deadline,
            only=command.service,
        )
        return Result(
            data=feeds.GatheredFeeds(
                feeds=[feed for found in answers.by_service.values() for feed in found.feeds],
                unreachable=answers.unreachable,
            )
        )

    async def list_restores(
        self, principal: Principal, command: restores.ListRestoresOf, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            restores.LIST_OF,
            principal,
            _inner(restores.ListRestores, command),
            deadline,
            only=command.service,
        )
        found = answers.by_service
        return Result(
            data=restores.GatheredRestores(
                restores=[one for cases in found.values() for one in cases.restores],
                services=[*found],
                unreachable=answers.unreachable,
            )
        )

    async def get_overview(
        self, principal: Principal, command: overview.GetOverview, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(overview.OVERVIEW_OF, principal, command, deadline)
        return Result(
            data=overview.Overview(
                services=[*answers.by_service.values()], unreachable=answers.unreachable
            )
        )

    def _passed_on(self, rows: Mapping[str, Operation], inner: type[C]) -> QueryHandler:
        """To the service that the command names."""

        async def handle(principal: Principal, command: Any, deadline: float) -> Result:
            return Result(
                data=await self._services.ask_one(
                    rows, command.service, principal, _inner(inner, command), deadline
                )
            )

        return handle


def _inner(kind: type[C], command: Command) -> C:
    """What the service is asked: the same without what the gateway alone reads."""
    values = {name: getattr(command, name) for name in kind.model_fields}
    return cast(C, kind.model_construct(**values))


def _no_letter(letter_id: str) -> e.NotFound:
    return e.NotFound(f"There is no dead letter {letter_id} among the first 1,000 of each queue.")
