"""The audit of a service, in pages."""

from __future__ import annotations

from datetime import UTC, datetime, time

from libs.contracts.operating import audit as contract
from libs.contracts.operating.pages import Listed, Place
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.places import number_of
from libs.handling.queries import QueryHandler
from libs.persistence import audit_pages
from libs.persistence.audit_pages import Wanted
from libs.persistence.engine import Database


class AuditRows:
    """The handler of one service."""

    def __init__(self, service: str, database: Database) -> None:
        self._service = service
        self._database = database

    def by_operation(self) -> dict[str, QueryHandler]:
        return {contract.LIST_OF[self._service].name: self.list}

    async def list(self, _: Principal, command: contract.ListAudit, __: float) -> Result:
        place = command.place
        wanted = Wanted(
            since=command.since,
            until=command.until,
            actor=command.actor,
            action=command.action,
            text=command.text,
        )
        async with self._database.transaction() as connection:
            rows, following = await audit_pages.page(
                connection,
                wanted,
                after=(place.at.date(), number_of(place)) if place is not None else None,
                order=command.order,
                limit=command.limit,
            )
        next_place = None
        if following is not None:
            day, number = following
            next_place = Place(datetime.combine(day, time(), UTC), str(number)).encode()
        return Result(
            data=Listed[contract.AuditRow](
                items=[
                    contract.AuditRow(
                        day=row.day,
                        number=row.number,
                        entry=row.entry,
                        previous=row.previous.hex(),
                        hash=row.hash.hex(),
                    )
                    for row in rows
                ],
                next=next_place,
            )
        )
