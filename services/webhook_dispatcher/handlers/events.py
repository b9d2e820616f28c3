"""Reading events, exactly as they are delivered: a customer's own, or those of all the partner's customers."""

from __future__ import annotations

import msgspec

from libs.contracts.errors import NotFound
from libs.contracts.event_views import EVERYTHING, TYPES_BY_FILTER, GetEvent, ListEvents
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.persistence.engine import Database
from services.webhook_dispatcher.repository import events


class Events:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, principal: Principal, command: GetEvent, _: float) -> Result:
        async with self._database.transaction() as connection:
            found = await events.find(connection, principal, command.event_id)
        if found is None:
            raise NotFound
        return Result(data=msgspec.Raw(found.body))

    async def list(self, principal: Principal, command: ListEvents, _: float) -> Result:
        everything = command.event_type in (None, EVERYTHING)
        types = None if everything else TYPES_BY_FILTER[command.event_type or EVERYTHING]
        async with self._database.transaction() as connection:
            after = 0
            if command.after is not None:
                last = await events.find(connection, principal, command.after)
                if last is None:
                    raise NotFound(
                        "The event of `after` is not known, or kept no longer: begin without `after`."
                    )
                after = last.position
            bodies = await events.following(
                connection, principal, after=after, types=types, limit=command.limit
            )
        return Result(data=[msgspec.Raw(body) for body in bodies])
