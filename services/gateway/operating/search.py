"""Search by id, over all services."""

from __future__ import annotations

from libs.contracts.operating import search
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from services.gateway.operating.asking import Services


class Searching:
    """The handler of the row that searches."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def by_operation(self) -> dict[str, QueryHandler]:
        return {search.SEARCH.name: self._search}

    async def _search(
        self, principal: Principal, command: search.Search, deadline: float
    ) -> Result:
        answers = await self._services.ask_each(
            search.FIND_ID_OF, principal, search.FindId(q=command.q), deadline
        )
        found = [item for answer in answers.by_service.values() for item in answer.found]
        return Result(search.SearchResult(found=found, unreachable=answers.unreachable))
