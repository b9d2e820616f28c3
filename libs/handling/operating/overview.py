"""What waits for a person in one service, and the messages in its queues."""

from __future__ import annotations

from collections.abc import Sequence

from libs.contracts.errors import Unavailable
from libs.contracts.operating import commands, feeds, restores
from libs.contracts.operating import overview as contract
from libs.contracts.operating.overview import MOST_COUNTED, Waiting, WaitingKind
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.letters import OwnLetters
from libs.handling.operating.waiting import Counted, CountWaiting, counting
from libs.handling.queries import QueryHandler
from libs.messaging.queue_depths import QueueDepths
from libs.persistence import continuity, feed_stops
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.tables import inbox

_parked = counting(
    WaitingKind.PARKED_COMMANDS,
    inbox.c.parked_at,
    inbox.c.finished_at.is_(None),
    inbox.c.parked_at.is_not(None),
)


class Overview:
    """The handler of one service.

    Args:
        depths: None for a service without queues.
        letters: None for a service without dead queues.
        counts: what waits for a person in this service alone.
    """

    def __init__(
        self,
        service: str,
        database: Database,
        *,
        depths: QueueDepths | None,
        letters: OwnLetters | None,
        counts: Sequence[CountWaiting],
    ) -> None:
        self._service = service
        self._database = database
        self._depths = depths
        self._letters = letters
        self._counts = (*_counts_of(service), *counts)

    def by_operation(self) -> dict[str, QueryHandler]:
        handlers: dict[str, QueryHandler] = {contract.OVERVIEW_OF[self._service].name: self.get}
        if self._service in contract.DEPTHS_OF:
            handlers[contract.DEPTHS_OF[self._service].name] = self.get_depths
        return handlers

    async def get(self, _: Principal, __: contract.GetOverview, ___: float) -> Result:
        async with self._database.transaction() as connection:
            counted = [await count(connection) for count in self._counts]
        depths = await self._depths.now() if self._depths is not None else {}
        if depths is not None:
            counted += await self._dead(depths)
        return Result(
            data=contract.ServiceOverview(
                service=self._service,
                waiting=[
                    Waiting(kind=kind, count=count, oldest_at=oldest_at)
                    for kind, count, oldest_at in counted
                    if count
                ],
                queues=_shown(depths),
            )
        )

    async def get_depths(self, _: Principal, __: contract.GetQueueDepths, ___: float) -> Result:
        depths = await self._depths.now() if self._depths is not None else {}
        return Result(data=contract.QueueDepths(queues=_shown(depths)))

    async def _dead(self, depths: dict[str, int]) -> list[Counted]:
        """The first letter of a queue is its oldest."""
        queues = self._letters.queues if self._letters is not None else ()
        filled = [queue for queue in queues if depths.get(queue)]
        if self._letters is None or not filled:
            return []
        count = min(sum(depths[queue] for queue in filled), MOST_COUNTED)
        try:
            async with self._letters.opened() as letters:
                first = [
                    letter for queue in filled for letter in await letters.look(queue, limit=1)
                ]
        except Unavailable:
            first = []
        oldest = min((one.died_at for one in first if one.died_at is not None), default=None)
        return [(WaitingKind.DEAD_LETTERS, count, oldest)]


def _shown(depths: dict[str, int] | None) -> list[contract.QueueDepth] | None:
    if depths is None:
        return None
    return [contract.QueueDepth(queue=queue, messages=count) for queue, count in depths.items()]


def _counts_of(service: str) -> Sequence[CountWaiting]:
    """The counts that several services have in common."""
    return (
        *((_parked,) if service in commands.SERVICES else ()),
        *((_stopped_feeds,) if service in feeds.SERVICES else ()),
        *((_restores,) if service in restores.SERVICES else ()),
    )


async def _stopped_feeds(connection: AsyncConnection) -> Counted:
    states = await feed_stops.feed_states(connection)
    since = [state.since for state in states if state.since is not None]
    return WaitingKind.STOPPED_FEEDS, len(since), min(since, default=None)


async def _restores(connection: AsyncConnection) -> Counted:
    since = [case.first_seen_at for case in await continuity.open_cases(connection)]
    return WaitingKind.RESTORES, len(since), min(since, default=None)
