"""What operators can ask of every service, as handlers of its queries."""

from __future__ import annotations

from collections.abc import Sequence

from libs.contracts.operating import commands, feeds, restores
from libs.handling.operating.audit_rows import AuditRows
from libs.handling.operating.feeds import Feeds
from libs.handling.operating.letters import Letters, OwnLetters
from libs.handling.operating.open_commands import OpenCommands, WhyNotAbandoned
from libs.handling.operating.overview import Overview
from libs.handling.operating.request_steps import FindOwnSteps, RequestSteps
from libs.handling.operating.resealing import Resealing
from libs.handling.operating.restores import Restores
from libs.handling.operating.waiting import CountWaiting
from libs.handling.queries import QueryHandler
from libs.handling.resealing import SealedStore
from libs.messaging.queue_depths import QueueDepths
from libs.persistence.engine import Database


def operating_handlers(
    service: str,
    database: Database,
    *,
    depths: QueueDepths | None = None,
    letters: OwnLetters | None = None,
    sealed: SealedStore | None = None,
    why_not_abandoned: WhyNotAbandoned | None = None,
    counts: Sequence[CountWaiting] = (),
    own_steps: FindOwnSteps | None = None,
) -> dict[str, QueryHandler]:
    """The handlers of the rows that the service has (`libs.contracts.operating`).

    Args:
        depths: added to the broker after the consumers.
        letters: of a service with dead queues.
        sealed: of a service that stores sealed values.
        why_not_abandoned: what the service has to say against it.
        counts: what waits for a person in this service alone.
        own_steps: what the service's own tables have of a request.
    """
    handlers = {
        **AuditRows(service, database).by_operation(),
        **Overview(service, database, depths=depths, letters=letters, counts=counts).by_operation(),
        **RequestSteps(service, database, own_steps).by_operation(),
    }
    if service in commands.SERVICES:
        handlers |= OpenCommands(service, database, why_not_abandoned).by_operation()
    if letters is not None:
        handlers |= Letters(service, database, letters).by_operation()
    if service in feeds.SERVICES:
        handlers |= Feeds(service, database).by_operation()
    if service in restores.SERVICES:
        handlers |= Restores(service, database).by_operation()
    if sealed is not None:
        handlers |= Resealing(service, database, sealed).by_operation()
    return handlers
