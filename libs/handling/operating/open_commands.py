"""Commands that are not finished: list, retry, abandon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from libs.contracts import errors as e
from libs.contracts.exact_json import encode
from libs.contracts.operating import commands as contract
from libs.contracts.operating.commands import CommandState, OpenCommand
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.operating.places import uuid_of
from libs.handling.queries import QueryHandler
from libs.handling.stored_commands import principal_of
from libs.messaging.envelope import Reply, WireError
from libs.persistence import open_commands, parking
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database

WhyNotAbandoned = Callable[[AsyncConnection, str, UUID], Awaitable[str | None]]
"""Why a command of this operation and id must not be abandoned, as a sentence; None when it may be. The command is
locked by the transaction.
"""


class OpenCommands:
    """The handlers of one service."""

    def __init__(
        self, service: str, database: Database, why_not_abandoned: WhyNotAbandoned | None
    ) -> None:
        self._service = service
        self._database = database
        self._why_not_abandoned = why_not_abandoned

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            contract.LIST_OF[self._service].name: self.list,
            contract.FIND_OF[self._service].name: self.find,
            contract.RETRY_OF[self._service].name: self.retry,
            contract.ABANDON_OF[self._service].name: self.abandon,
        }

    async def list(self, _: Principal, command: contract.ListCommands, __: float) -> Result:
        place = command.place
        async with self._database.transaction() as connection:
            found = await open_commands.page(
                connection,
                parked=None if command.state is None else command.state is CommandState.PARKED,
                tenant=command.tenant,
                after=(place.at, uuid_of(place)) if place is not None else None,
                order=command.order,
                limit=command.limit + 1,
            )
        shown = [self._shown(one) for one in found]
        is_parked = command.state is CommandState.PARKED
        items, following = cut(
            shown, command.limit, lambda item: place_of(item, by_parked=is_parked)
        )
        return Result(data=Listed[OpenCommand](items=[*items], next=following))

    async def find(self, _: Principal, command: contract.FindCommand, __: float) -> Result:
        async with self._database.transaction() as connection:
            found = await open_commands.find(connection, command.command_id)
        if found is None:
            raise _not_found(command.command_id)
        return Result(data=self._shown(found))

    async def retry(
        self, principal: Principal, command: contract.DecideOnCommand, _: float
    ) -> Result:
        """A parked command is driven again, and its faults are counted from 0."""
        command_id = command.command_id
        async with self._database.transaction() as connection:
            if await parking.retry(connection, command_id) is None:
                raise _not_found(command_id)
            found = await open_commands.find(connection, command_id)
            assert found is not None
            await record(
                connection,
                principal,
                "commands.retry",
                reason=command.reason,
                command_id=str(command_id),
            )
        return Result(data=self._shown(found))

    async def abandon(
        self, principal: Principal, command: contract.DecideOnCommand, _: float
    ) -> Result:
        """The operator's name and the reason stay in the command's row, which is never purged."""
        command_id = command.command_id
        async with self._database.transaction() as connection:
            found = await open_commands.lock(connection, command_id)
            if found is None:
                raise _not_found(command_id)
            if found.parked_at is None:
                raise e.InvalidState(
                    "Only a parked command can be abandoned; this one is still driven."
                )
            if self._why_not_abandoned is not None:
                why_not = await self._why_not_abandoned(connection, found.operation, command_id)
                if why_not is not None:
                    raise e.InvalidState(why_not)
            by = principal.actor
            await parking.abandon(
                connection, found, reply=_reply(found), by=by, because=command.reason
            )
            await record(
                connection,
                principal,
                "commands.abandon",
                reason=command.reason,
                command_id=str(command_id),
            )
        return Result(
            data=contract.Abandoned(
                service=self._service,
                command_id=str(command_id),
                operation=found.operation,
                abandoned_by=by,
                reason=command.reason,
            )
        )

    def _shown(self, command: open_commands.OpenCommand) -> OpenCommand:
        return OpenCommand(
            service=self._service,
            command_id=str(command.command_id),
            operation=command.operation,
            ordering_key=command.ordering_key,
            tenant=_tenant(command),
            request_id=command.request_id,
            accepted_at=command.accepted_at,
            attempts=command.attempts,
            faults=command.faults,
            last_error=command.last_error,
            next_attempt_at=None if command.parked_at else command.next_attempt_at,
            is_driven=command.is_driven,
            parked_at=command.parked_at,
            parked_because=command.parked_because,
        )


def place_of(command: OpenCommand, *, by_parked: bool) -> Place:
    """Where the command stands in its list."""
    at = command.parked_at if by_parked else command.accepted_at
    return Place(at or command.accepted_at, command.command_id)


def _not_found(command_id: UUID) -> e.NotFound:
    return e.NotFound(f"There is no unfinished command {command_id}.")


def _reply(command: open_commands.OpenCommand) -> bytes:
    """The reply to a request that repeats an abandoned command."""
    return encode(
        Reply(
            id=str(command.command_id),
            to=command.message_id,
            error=WireError.of(e.Abandoned()),
            request_id=command.request_id,
        )
    )


def _tenant(command: open_commands.OpenCommand) -> str | None:
    """None when the stored principal cannot be read, which may be why the command is parked."""
    principal = principal_of(command.principal)
    return principal.tenant if principal else None
