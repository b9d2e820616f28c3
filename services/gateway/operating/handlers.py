"""The handlers of all rows that the gateway answers itself."""

from __future__ import annotations

from libs.contracts.operation import GATEWAY
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import QueryHandler
from libs.handling.query_client import QueryClient
from libs.messaging.service_client import ServiceClient
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from services.gateway.logins import Logins
from services.gateway.operating import traffic
from services.gateway.operating.asking import ASK_SECONDS, Services
from services.gateway.operating.keys import Keys
from services.gateway.operating.of_services import OfServices
from services.gateway.operating.operators import Operators
from services.gateway.operating.request_trace import RequestTraces
from services.gateway.operating.search import Searching
from services.gateway.operating.sessions import Sessions
from services.gateway.passwords import Passwords
from services.gateway.queue_samples import QueueSamples
from services.gateway.resealing import sealed_store
from services.gateway.traffic import TrafficCounts
from services.gateway.waiting import COUNTS


def handlers_of(
    service_client: ServiceClient,
    *,
    database: Database,
    keyring: Keyring,
    passwords: Passwords,
    logins: Logins,
    traffic_counts: TrafficCounts,
    queues: QueueSamples,
    require_idempotency_keys: bool,
) -> dict[str, QueryHandler]:
    """By the names of their rows.

    Args:
        require_idempotency_keys: of new keys, unless their creation says otherwise.
    """
    handlers: dict[str, QueryHandler] = {}
    services = Services(service_client, handlers)
    queries = QueryClient(service_client, patience_seconds=ASK_SECONDS)
    for by_operation in (
        Keys(
            database, keyring, queries, require_idempotency_keys=require_idempotency_keys
        ).by_operation(),
        Operators(database, keyring, passwords).by_operation(),
        Searching(services).by_operation(),
        RequestTraces(services).by_operation(),
        Sessions(logins).by_operation(),
        traffic.by_operation(traffic_counts, queues),
        operating_handlers(GATEWAY, database, sealed=sealed_store(keyring), counts=COUNTS),
        OfServices(services).by_operation(),
    ):
        handlers.update(by_operation)
    return handlers
