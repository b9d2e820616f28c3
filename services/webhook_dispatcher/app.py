"""Composition: commands and queries of the table, and the engine that delivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from libs.contracts import webhook_operations as table
from libs.contracts.ids import parse_id
from libs.contracts.sensitive import Sealer
from libs.contracts.webhook_operations import FamilyPair
from libs.handling.acceptance import Arriving
from libs.handling.commands import CommandHandler, run_commands
from libs.handling.key_checks import require_known_keys
from libs.handling.operating.letters import OwnLetters
from libs.handling.operating.serving import operating_handlers
from libs.handling.operating.waiting import measure_for_ever
from libs.handling.queries import QueryHandler, run_queries
from libs.handling.servers import BROKER_WAIT_SECONDS, broker_of, database_of
from libs.messaging.queue_depths import QueueDepths
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from libs.runtime.open_files import possible_connections
from libs.runtime.process import Misconfigured, Process
from services.webhook_dispatcher.adapters.allowance import Allowance, BadAllowance
from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy, ResolvingCallbackUrls
from services.webhook_dispatcher.adapters.lookups import AT_ONCE, SLOW_AT_ONCE, Lookups
from services.webhook_dispatcher.adapters.poster import open_poster
from services.webhook_dispatcher.engine.database_clock import DatabaseClock
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.run import CONNECTIONS, run_engine
from services.webhook_dispatcher.handlers.batches import Batches
from services.webhook_dispatcher.handlers.deliveries import (
    DeliveryCommands,
    DeliveryQueries,
    Record,
)
from services.webhook_dispatcher.handlers.events import Events
from services.webhook_dispatcher.handlers.health import HealthQueries
from services.webhook_dispatcher.handlers.operating import OperatingWebhooks
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.handlers.recovery import RecoveryHandler
from services.webhook_dispatcher.handlers.request_steps import find_own_steps
from services.webhook_dispatcher.handlers.secrets import Secrets
from services.webhook_dispatcher.handlers.subscriptions import (
    SubscriptionCommands,
    SubscriptionQueries,
)
from services.webhook_dispatcher.ports import CallbackUrls
from services.webhook_dispatcher.replaying import accept_anew
from services.webhook_dispatcher.repository import recording
from services.webhook_dispatcher.resealing import sealed_store
from services.webhook_dispatcher.settings import Settings
from services.webhook_dispatcher.waiting import COUNTS

CONNECTIONS_PER_SLOT = 2
"""Kept-alive connections are replaced after a minute. With fewer connections than this, every post would dial: 300
rather than 115 microseconds of processor time.
"""

_ORDERS = {
    row.name: order
    for order, pairs in {
        "": (table.RECOVER_SUBSCRIPTION,),
        "/changes": (table.UPDATE_SUBSCRIPTION, table.DELETE_SUBSCRIPTION),
        "/secret": (table.ROTATE_SECRET,),
    }.items()
    for pair in pairs
    for row in pair
}
"""By the operation, what its ordering key ends with."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    callback_policy = callback_policy_of(settings)
    keyring, sealer = settings.ring("storage_keys"), settings.message_sealer()
    broker = broker_of(settings, process)
    engine_database = open_database(
        settings.database_url.get_secret_value(),
        process.service,
        ca_file=settings.database_ca_file,
        pool_size=CONNECTIONS,
        name="deliveries",
    )
    database = database_of(settings, process, pool_size=settings.database_connections - CONNECTIONS)
    delivery_settings = delivery_settings_of(settings)
    lookups = Lookups()
    connections = CONNECTIONS_PER_SLOT * settings.slots
    _warn_of_few_open_files(process, connections)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(engine_database.close)
        opened.push_async_callback(database.close)
        opened.push_async_callback(lookups.close)
        await require_known_keys(database, settings)
        clock = DatabaseClock(engine_database)
        await clock.start()
        await opened.enter_async_context(
            process.background("database-clock", clock.follow_for_ever())
        )
        poster = await opened.enter_async_context(
            open_poster(callback_policy, connections=connections, clock=clock)
        )
        await opened.enter_async_context(broker.open())
        wake = await opened.enter_async_context(
            run_engine(
                process, broker, engine_database, poster, keyring, delivery_settings, clock=clock
            )
        )
        handlers = Handlers(
            keyring,
            database,
            ResolvingCallbackUrls(callback_policy, lookups),
            record=recording.record,
            wake=wake,
            overlap=timedelta(hours=settings.secret_overlap_hours),
            retention=delivery_settings.retention,
        )
        depths = QueueDepths(process.service)
        queries = {
            **handlers.queries,
            **operating_query_handlers(settings, process.service, database, depths, clock),
        }
        await opened.enter_async_context(
            run_queries(process, sealer, broker, queries, settings.query_queues)
        )
        await opened.enter_async_context(
            run_commands(
                process,
                sealer,
                broker,
                database,
                handlers.commands,
                in_order_of_subscription,
                lease_seconds=settings.lease_seconds,
            )
        )
        await opened.enter_async_context(
            process.background("waiting", measure_for_ever(database, COUNTS))
        )
        broker.add(depths)
        await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
        yield


def operating_query_handlers(
    settings: Settings,
    service: str,
    database: Database,
    depths: QueueDepths,
    clock: Callable[[], datetime],
) -> Mapping[str, QueryHandler]:
    """The queries of operators that every service answers."""
    letters = OwnLetters(
        settings.amqp_url.get_secret_value(),
        settings.amqp_ca_file,
        accept_anew(
            service,
            database,
            settings.message_sealer(),
            ordering=in_order_of_subscription,
            retention=timedelta(days=settings.retention_days),
            clock=clock,
        ),
    )
    return operating_handlers(
        service,
        database,
        depths=depths,
        letters=letters,
        sealed=sealed_store(settings),
        counts=COUNTS,
        own_steps=find_own_steps,
    )


def delivery_settings_of(settings: Settings) -> DeliverySettings:
    return DeliverySettings(
        retry_seconds=settings.retry_seconds,
        slots=settings.slots,
        lease_seconds=settings.delivery_lease_seconds,
        retention=timedelta(days=settings.retention_days),
    )


def callback_policy_of(settings: Settings) -> CallbackPolicy:
    """Where deliveries may go. Raises Misconfigured."""
    try:
        return CallbackPolicy(Allowance.parse(settings.callback_allow))
    except BadAllowance as error:
        raise Misconfigured(f"set BANKSIDE_CALLBACK_ALLOW: {error}.") from None


def _warn_of_few_open_files(process: Process, connections: int) -> None:
    # Names are looked up for posts, and apart from these for new callback URLs.
    wanted = connections + 2 * (AT_ONCE + SLOW_AT_ONCE)
    if (possible := possible_connections(process.service, wanted)) < wanted:
        process.log.warning("few_open_files", possible=possible, wanted=wanted)


async def in_order_of_subscription(_: AsyncConnection, command: Arriving) -> str | None:
    """Changes of one subscription are made in the order in which they were accepted, so that one that is driven again
    undoes no later one. So are rotations of its secret, which wait for no change: one may have to wait long for its
    callback URL to be looked up. Recoveries go one after another: they are long, and each would wait on a connection
    for the lock on the subscription's row.

    Other commands do not wait. The keys contain the principal, so that another one that names the subscription neither
    waits for its commands nor delays them.
    """
    order = _ORDERS.get(command.operation)
    if order is None:
        return None
    principal, subscription_id = command.principal, parse_id(command.body["subscription_id"])
    return f"{principal.tenant}/{principal.customer_id or ''}/{subscription_id}{order}"


class Handlers:
    """The handlers of all rows, each of both families."""

    def __init__(
        self,
        sealer: Sealer,
        database: Database,
        callback_urls: CallbackUrls,
        *,
        record: Record,
        wake: Callable[[], None],
        overlap: timedelta,
        retention: timedelta,
    ) -> None:
        outcomes, batches = Outcomes(sealer), Batches()
        subscriptions = SubscriptionCommands(outcomes, sealer, callback_urls, wake, batches)
        found = SubscriptionQueries(database)
        secrets = Secrets(outcomes, sealer, database, overlap)
        deliveries = DeliveryCommands(outcomes, record, wake, retention)
        delivered = DeliveryQueries(database)
        events = Events(database)
        self.commands: Mapping[str, CommandHandler] = _by_name(
            {
                table.CREATE_SUBSCRIPTION: subscriptions.create,
                table.UPDATE_SUBSCRIPTION: subscriptions.update,
                table.DELETE_SUBSCRIPTION: subscriptions.delete,
                table.ROTATE_SECRET: secrets.rotate,
                table.TEST_SUBSCRIPTION: deliveries.test,
                table.RESEND_DELIVERY: deliveries.resend,
                table.RECOVER_SUBSCRIPTION: RecoveryHandler(outcomes, retention, wake, batches),
            }
        )
        operators = dict(OperatingWebhooks(database, retention, wake).by_operation())
        self.queries: Mapping[str, QueryHandler] = operators | _by_name(
            {
                table.LIST_SUBSCRIPTIONS: found.list,
                table.GET_SUBSCRIPTION: found.get,
                table.GET_SECRET: secrets.get,
                table.GET_HEALTH: HealthQueries(database).get,
                table.LIST_DELIVERIES: delivered.list,
                table.GET_DELIVERY: delivered.get,
                table.LIST_EVENTS: events.list,
                table.GET_EVENT: events.get,
            }
        )


def _by_name(handlers: Mapping[FamilyPair, Any]) -> dict[str, Any]:
    return {row.name: handler for pair, handler in handlers.items() for row in pair}
