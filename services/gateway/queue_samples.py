"""The messages in the queues of services, once in each minute, for charts. One process of the gateway asks for all.

Of a minute in which a service could not be asked nothing is known.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NoReturn

import structlog

from libs.contracts.errors import BanksideError
from libs.contracts.operating.overview import DEPTHS_OF, GetQueueDepths, QueueDepths
from libs.contracts.operating.traffic import MOST_MINUTES
from libs.contracts.principal import SERVICE
from libs.handling.periodic import repeat
from libs.messaging.topology import dead_queues
from libs.persistence.engine import Database
from services.gateway.operating.asking import ASK_SECONDS, Services

LOOK_SECONDS = 20.0
"""Less than a minute, so that none is left out."""

_IS_KNOWN = "SELECT EXISTS (SELECT FROM queue_depths WHERE minute = $1)"
_ADD = """
    INSERT INTO queue_depths (minute, service, messages)
    SELECT $1, * FROM unnest($2::text[], $3::bigint[])
    ON CONFLICT (minute, service) DO NOTHING
    """
_FORGET = "DELETE FROM queue_depths WHERE minute < $1"
_SINCE = "SELECT minute, service, messages FROM queue_depths WHERE minute >= $1 ORDER BY service"

_log = structlog.get_logger("queue_samples")


class QueueSamples:
    def __init__(self, database: Database, services: Services) -> None:
        self._database = database
        self._services = services
        self._dead = frozenset(dead_queues())

    async def write_for_ever(self) -> NoReturn:
        await repeat("queue_samples", self.write, LOOK_SECONDS)

    async def write(self) -> None:
        """Ask the services, unless another process has done so in this minute."""
        minute = int(time.time()) // 60
        async with self._database.driver() as connection:
            if await connection.fetchval(_IS_KNOWN, minute):
                return
        found = await self._ask()
        async with self._database.driver_transaction() as connection:
            await connection.execute(_ADD, minute, list(found), list(found.values()))
            await connection.execute(_FORGET, minute - MOST_MINUTES)

    async def since(self, minute: int) -> list[Mapping[str, Any]]:
        """The rows of this minute and later ones, those of one service together."""
        async with self._database.driver() as connection:
            return list(await connection.fetch(_SINCE, minute))

    async def _ask(self) -> dict[str, int]:
        """Messages that wait, by service; dead letters wait for a person, and are counted elsewhere."""
        try:
            answers = await self._services.ask_each(
                DEPTHS_OF, SERVICE, GetQueueDepths(), time.time() + ASK_SECONDS
            )
        except BanksideError as refusal:
            # Of a service of another release. A chart does not end the gateway.
            _log.warning("queues_not_sampled", code=refusal.code)
            return {}
        depths: Mapping[str, QueueDepths] = answers.by_service
        return {
            service: sum(each.messages for each in known.queues if each.queue not in self._dead)
            for service, known in depths.items()
            if known.queues is not None
        }
