"""Provider feeds: where they stand, skipping the entry that stops one, reading one again from its first entry."""

from __future__ import annotations

from dataclasses import asdict

from libs.contracts import errors as e
from libs.contracts.operating import feeds as contract
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.persistence import feed_stops
from libs.persistence.engine import Database
from libs.persistence.feed_events import KEPT
from libs.persistence.feed_stops import FeedState

SKIPS_SHOWN = 20


class Feeds:
    """The handlers of one service."""

    def __init__(self, service: str, database: Database) -> None:
        self._service = service
        self._database = database

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            contract.LIST_OF[self._service].name: self.list,
            contract.FIND_OF[self._service].name: self.find,
            contract.SKIP_OF[self._service].name: self.skip,
            contract.RESTART_OF[self._service].name: self.restart,
        }

    async def list(self, _: Principal, command: contract.ListFeeds, __: float) -> Result:
        async with self._database.transaction() as connection:
            states = await feed_stops.feed_states(connection)
        return Result(
            data=contract.Feeds(
                feeds=[
                    self._shown(state)
                    for state in states
                    if state.stop is not None or not command.stopped
                ]
            )
        )

    async def find(self, _: Principal, command: contract.FindFeed, __: float) -> Result:
        async with self._database.transaction() as connection:
            states = await feed_stops.feed_states(connection)
            skips = await feed_stops.skips(connection, command.feed, most=SKIPS_SHOWN)
        state = next((one for one in states if one.feed == command.feed), None)
        if state is None:
            raise e.NotFound(f"There is no feed {self._service}/{command.feed}.")
        return Result(
            data=contract.FeedWithSkips(
                **dict(self._shown(state)),
                skips=[contract.FeedSkip(**asdict(skip)) for skip in skips],
            )
        )

    async def skip(self, principal: Principal, command: contract.SkipEntry, _: float) -> Result:
        """The feed moves past the entry at its next try, within 30 s."""
        async with self._database.transaction() as connection:
            requested = await feed_stops.request_skip(
                connection,
                command.feed,
                command.position,
                reason=command.reason,
                asked_by=principal.actor,
            )
            if not requested:
                raise e.InvalidState(
                    f"{self._service}/{command.feed} does not stand still at an entry at {command.position},"
                    " or it is to be skipped already."
                )
            await record(
                connection,
                principal,
                "feeds.skip",
                reason=command.reason,
                feed=command.feed,
                position=command.position,
            )
        return Result(
            data=contract.SkipRequested(
                service=self._service,
                feed=command.feed,
                position=command.position,
                reason=command.reason,
                asked_by=principal.actor,
            )
        )

    async def restart(
        self, principal: Principal, command: contract.RestartFeed, _: float
    ) -> Result:
        feed = f"{self._service}/{command.feed}"
        try:
            async with self._database.transaction() as connection:
                restarted = await feed_stops.restart(
                    connection, command.feed, apply_again=command.apply_again
                )
                if not restarted:
                    raise e.InvalidState(
                        f"{feed} cannot be restarted: it moves, an entry stops it, or its provider gives positions."
                    )
                await record(
                    connection,
                    principal,
                    "feeds.restart",
                    reason=command.reason,
                    feed=command.feed,
                    apply_again=command.apply_again,
                )
        except feed_stops.ForgottenEvents:
            raise e.InvalidState(
                f"{feed} has read more than {KEPT} entries, those that a restart had it read again among them: the"
                " first ones may have their effects a second time. Where that may be, restart it with `apply_again`."
            ) from None
        return Result(
            data=contract.FeedRestarted(
                service=self._service,
                feed=command.feed,
                reason=command.reason,
                asked_by=principal.actor,
            )
        )

    def _shown(self, state: FeedState) -> contract.Feed:
        stop = state.stop
        if stop is None or state.since is None or state.tried_at is None or state.tries is None:
            return contract.Feed(
                service=self._service, feed=state.feed, position=state.position, stop=None
            )
        return contract.Feed(
            service=self._service,
            feed=state.feed,
            position=state.position,
            stop=contract.FeedStop(
                entry_position=stop.entry_position,
                entry_type=stop.entry_type,
                error=stop.error,
                outline=stop.outline,
                since=state.since,
                tried_at=state.tried_at,
                tries=state.tries,
            ),
        )
