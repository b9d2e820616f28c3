"""The handlers of all rows that the gateway answers itself."""

from __future__ import annotations

from dataclasses import dataclass

from libs.contracts.operation import GATEWAY
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import QueryHandler
from libs.handling.query_client import QueryClient
from libs.messaging.caller import Caller
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


@dataclass(frozen=True)
class Parts:
    """What handlers are made of."""

    database: Database
    keyring: Keyring
    passwords: Passwords
    logins: Logins
    traffic: TrafficCounts
    queues: QueueSamples
    require_idempotency_keys: bool
    """Of new keys, unless their creation says otherwise."""


def handlers_of(parts: Parts, caller: Caller) -> dict[str, QueryHandler]:
    """By the names of their rows."""
    handlers: dict[str, QueryHandler] = {}
    services = Services(caller, handlers)
    queries = QueryClient(caller, patience_seconds=ASK_SECONDS)
    for made in (
        Keys(
            parts.database,
            parts.keyring,
            queries,
            require_idempotency_keys=parts.require_idempotency_keys,
        ).handlers(),
        Operators(parts.database, parts.keyring, parts.passwords).handlers(),
        Searching(services).handlers(),
        RequestTraces(services).handlers(),
        Sessions(parts.logins).handlers(),
        traffic.handlers(parts.traffic, parts.queues),
        operating_handlers(
            GATEWAY, parts.database, sealed=sealed_store(parts.keyring), counts=COUNTS
        ),
        OfServices(services).by_operation(),
    ):
        handlers.update(made)
    return handlers
