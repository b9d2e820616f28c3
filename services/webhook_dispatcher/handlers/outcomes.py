"""The outcome of a command, committed with its effect: a command that is driven again has no second effect.

Outcomes are purged with the command's row of the inbox.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from libs.contracts.exact_json import decode, encode
from libs.contracts.model import Model
from libs.contracts.sensitive import Sealer, SensitiveShape, open_payload, seal_payload
from libs.contracts.webhook_views import SubscriptionSecret
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.tables import outcome as table

ModelT = TypeVar("ModelT", bound=Model)

_FIND = select(table.c.data).where(table.c.command_id == bindparam("id"))
_INSERT = insert(table)
_RECORD = _INSERT.on_conflict_do_update(
    index_elements=[table.c.command_id], set_={"data": _INSERT.excluded.data}
)


SEALED = SensitiveShape.of(SubscriptionSecret)
"""Of the outcome of any command: those of others have no sensitive fields. By it, outcomes are sealed anew."""


class Outcomes:
    """Records the outcome of each command, its sensitive fields sealed."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    async def recall(self, drive: Drive, model: type[ModelT]) -> ModelT | None:
        """The outcome of an earlier drive of the command; None when there was none, or it had no effect."""
        if drive.attempt == 1:
            return None
        async with drive.database.transaction() as connection:
            return await self._find(connection, drive.command_id, model)

    async def change(
        self,
        drive: Drive,
        model: type[ModelT],
        act: Callable[[AsyncConnection], Awaitable[ModelT]],
    ) -> ModelT:
        """Act in one transaction, unless an earlier drive has an outcome."""

        async def unless_done(connection: AsyncConnection, known: ModelT | None) -> ModelT:
            return known or await act(connection)

        return await self.step(drive, model, unless_done)

    async def step(
        self,
        drive: Drive,
        model: type[ModelT],
        act: Callable[[AsyncConnection, ModelT | None], Awaitable[ModelT]],
    ) -> ModelT:
        """Go on, in one transaction, from the outcome so far, which is None at the beginning of a command."""
        async with drive.transaction() as connection:
            known = await self._find(connection, drive.command_id, model)
            done = await act(connection, known)
            if done != known:
                await self._record(connection, drive.command_id, done)
            crash_point("webhook_dispatcher.changing")
        crash_point("webhook_dispatcher.changed")
        return done

    async def _find(
        self, connection: AsyncConnection, command_id: UUID, model: type[ModelT]
    ) -> ModelT | None:
        found = await connection.execute(_FIND, {"id": command_id})
        data = found.scalar_one_or_none()
        if data is None:
            return None
        sealed = decode(data)
        context = context_of(command_id)
        return model.model_validate(
            open_payload(SensitiveShape.of(model), sealed, self._sealer, context),
            extra="ignore",  # recorded by a newer release
        )

    async def _record(self, connection: AsyncConnection, command_id: UUID, done: Model) -> None:
        shape, context = SensitiveShape.of(type(done)), context_of(command_id)
        if shape and shape != SEALED:
            raise TypeError(f"{type(done).__name__} has sensitive fields that SEALED lacks")
        sealed = seal_payload(shape, done.model_dump(), self._sealer, context)
        await connection.execute(_RECORD, {"command_id": command_id, "data": encode(sealed)})


def context_of(command_id: UUID) -> str:
    """What the sealed fields of the row are bound to."""
    return f"webhook_dispatcher.outcome/{command_id}"
