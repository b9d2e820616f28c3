"""The composition of payments: commands and queries, core banking and its feed, the outbox, continuity, metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from libs.contracts import payments_operations as table
from libs.contracts.operating.wire_policies import LIST_WIRE_POLICIES
from libs.handling.commands import CommandHandler, run_commands
from libs.handling.continuity import RequestedReconciliation
from libs.handling.feeds import run_feed
from libs.handling.operating.letters import OwnLetters
from libs.handling.operating.serving import operating_handlers
from libs.handling.outbox_relay import run_relay
from libs.handling.queries import QueryHandler, run_queries
from libs.handling.query_client import QueryClient
from libs.handling.servers import BROKER_WAIT_SECONDS, broker_of, database_of
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.service_client import ServiceClient
from libs.persistence.continuity import Continuity, NewestRecords
from libs.persistence.engine import Database
from libs.providers.newest_records import FetchNewest
from libs.runtime.process import Process
from services.payments.abandoning import why_not_abandoned
from services.payments.adapters.ownership import OnboardingOwnership
from services.payments.customer_turns import CustomerTurns
from services.payments.effective_policies import EffectivePolicies
from services.payments.expiring import expire_for_ever
from services.payments.handlers import feed
from services.payments.handlers.approvals import ApproveWireHandler, DeclineWireHandler
from services.payments.handlers.cancel_wire import CancelWireHandler
from services.payments.handlers.operating import OperatingWires
from services.payments.handlers.policies import PolicyQueries, SetWirePolicyHandler
from services.payments.handlers.queries import Queries
from services.payments.handlers.reconcile_queries import ReconcileQueries
from services.payments.handlers.request_steps import find_own_steps
from services.payments.handlers.send_wire import SendWireHandler
from services.payments.handlers.sending import SEND_SECONDS, Sending
from services.payments.metrics import OPEN, PAST, count_for_ever, measure_for_ever
from services.payments.ports import CoreBanking, Ownership
from services.payments.providers import open_providers
from services.payments.replaying import accept_anew
from services.payments.repository import send_marks, sends, wires
from services.payments.settings import Settings
from services.payments.waiting import COUNTS

KEPT_FOR_EVER = frozenset({table.SEND_WIRE.name, table.APPROVE_WIRE.name})
"""The answers to wires are never purged: a repeated request gets the same answer in a year (interface §3)."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    sealer = settings.message_sealer()
    broker = broker_of(settings, process)
    service_client = ServiceClient(sealer)
    broker.add(service_client)
    ownership = OnboardingOwnership(
        QueryClient(service_client, patience_seconds=settings.ownership_seconds),
        capacity=settings.remembered_owners,
    )
    database = database_of(settings, process)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        core = (await open_providers(settings, opened)).core
        transit_seconds = settings.provider_transit_seconds + SEND_SECONDS
        continuity = continuity_of(
            database,
            core.newest,
            transit_seconds=transit_seconds,
            went_back=RequestedReconciliation(service_client, process.service),
        )
        effective = settings.effective_policies()
        commands = command_handlers(
            ownership, Sending(core.writes, lease_seconds=settings.lease_seconds), effective
        )
        depths = QueueDepths(process.service)
        queries = {
            **query_handlers(
                database, core.writes, ownership, effective, transit_seconds=transit_seconds
            ),
            **operating_query_handlers(settings, process.service, database, depths),
        }
        await opened.enter_async_context(broker.open())
        await opened.enter_async_context(run_relay(process, broker, database))
        await opened.enter_async_context(
            run_queries(process, sealer, broker, queries, settings.query_queues)
        )
        await opened.enter_async_context(
            run_commands(
                process,
                sealer,
                broker,
                database,
                commands,
                ordering=None,  # the bank reserves the funds of each wire; its row orders the commands about it
                keep_for_ever=KEPT_FOR_EVER,
                lease_seconds=settings.lease_seconds,
                hastens=False,  # `continuity` follows setbacks of the clock
            )
        )
        broker.add(depths)
        await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
        async with (
            process.background("metrics", measure_for_ever(database)),
            process.background("open-wire-counts", count_for_ever(database, OPEN)),
            process.background("past-wire-counts", count_for_ever(database, PAST)),
            process.background("continuity", continuity.watch()),
            process.background("approvals", expire_for_ever(database)),
            run_feed(
                process,
                database,
                feed.FEED,
                core.feed,
                feed.prepare,
                poll_seconds=settings.feed_poll_seconds,
                page_size=settings.feed_page_size,
            ),
        ):
            yield


def continuity_of(
    database: Database,
    newest: FetchNewest,
    *,
    transit_seconds: float,
    went_back: Callable[[], Awaitable[None]] | None = None,
) -> Continuity:
    return Continuity(
        database,
        [NewestRecords(wires.PROVIDER, newest, wires.compare)],
        transit_seconds=transit_seconds,
        on_checked=sends.make_pending_due,
        went_back=went_back,
        date_back=send_marks.date_back,
    )


def command_handlers(
    ownership: Ownership, sending: Sending, effective: EffectivePolicies
) -> Mapping[str, CommandHandler]:
    turns = CustomerTurns()
    return {
        table.SEND_WIRE.name: SendWireHandler(ownership, sending, effective, turns),
        table.CANCEL_WIRE.name: CancelWireHandler(),
        table.APPROVE_WIRE.name: ApproveWireHandler(ownership, sending, effective, turns),
        table.DECLINE_WIRE.name: DeclineWireHandler(),
        table.SET_WIRE_POLICY.name: SetWirePolicyHandler(ownership, effective),
    }


def query_handlers(
    database: Database,
    core: CoreBanking,
    ownership: Ownership,
    effective: EffectivePolicies,
    *,
    transit_seconds: float,
) -> Mapping[str, QueryHandler]:
    """The queries of wires and policies, those of operators among them."""
    queries = Queries(database)
    policies = PolicyQueries(database, ownership, effective)
    return {
        table.GET_WIRE_POLICY.name: policies.get_of_customer,
        table.GET_OWN_WIRE_POLICY.name: policies.get_own,
        LIST_WIRE_POLICIES.name: policies.list_of_all,
        table.GET_WIRE.name: queries.get_wire,
        table.LIST_WIRES.name: queries.list_wires,
        **ReconcileQueries(database).by_operation(),
        **OperatingWires(
            database, core, ownership, effective, transit_seconds=transit_seconds
        ).by_operation(),
    }


def operating_query_handlers(
    settings: Settings, service: str, database: Database, depths: QueueDepths
) -> Mapping[str, QueryHandler]:
    """The queries of operators that every service answers."""
    letters = OwnLetters(
        settings.amqp_url.get_secret_value(),
        settings.amqp_ca_file,
        accept_anew(service, database, settings.message_sealer()),
    )
    return operating_handlers(
        service,
        database,
        depths=depths,
        letters=letters,
        why_not_abandoned=why_not_abandoned,
        counts=COUNTS,
        own_steps=find_own_steps,
    )
