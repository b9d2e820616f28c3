"""Composition: the queries of the table, the tail of the financial feed, the outbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from libs.contracts import ledger_read_operations as table
from libs.handling import clock
from libs.handling.audit_head import log_head_for_ever
from libs.handling.feeds import feed_positions, run_feed
from libs.handling.operating.serving import operating_handlers
from libs.handling.outbox_relay import run_relay
from libs.handling.periodic import repeat
from libs.handling.queries import run_queries
from libs.handling.servers import BROKER_WAIT_SECONDS, broker_of, database_of
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.service_client import ServiceClient
from libs.runtime.process import Process
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.handlers.accounts import AccountQueries
from services.ledger_read.handlers.feed_events import FeedEvents
from services.ledger_read.handlers.ledger import LedgerQueries
from services.ledger_read.handlers.waiting_accounts import WaitingAccounts
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.providers import open_providers
from services.ledger_read.settings import Settings
from services.ledger_read.waiting_entries import WaitingEntries

FEED = "financial"
WAITING_HOUSEKEEPING_SECONDS = 15.0
HOUSEKEEPING_SECONDS = 60.0


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    sealer = settings.message_sealer()
    broker = broker_of(settings, process)
    service_client = ServiceClient(sealer)
    broker.add(service_client)
    ownership = OnboardingOwnership(
        service_client,
        patience_seconds=settings.ownership_seconds,
        remembered=settings.remembered_owners,
    )
    database = database_of(settings, process)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        financial = (await open_providers(settings, opened, database, ownership)).financial
        depths = QueueDepths(process.service)
        queries = {
            **AccountQueries(ownership, financial.accounts).by_operation(),
            **LedgerQueries(ownership, financial.ledger).by_operation(),
            table.LIST_FEED_POSITIONS.name: feed_positions(database),
            **operating_handlers(process.service, database, depths=depths),
        }
        await opened.enter_async_context(broker.open())
        await opened.enter_async_context(run_relay(process, broker, database))
        await opened.enter_async_context(
            run_queries(process, sealer, broker, queries, settings.query_queues)
        )
        broker.add(depths)
        await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
        events = FeedEvents(ownership)
        if financial.read_again is not None:
            waiting = WaitingAccounts(
                WaitingEntries(database), ownership, financial.read_again, events
            )
            for name, work, pause_seconds in (
                ("feed-waiting", waiting.report_due, settings.feed_poll_seconds),
                ("feed-waiting-housekeeping", waiting.keep_house, WAITING_HOUSEKEEPING_SECONDS),
            ):
                background = process.background(name, repeat(name, work, pause_seconds))
                await opened.enter_async_context(background)
        async with (
            process.background("audit-head", log_head_for_ever(database)),
            process.background(
                "posting-housekeeping",
                repeat(
                    "housekeeping", PostingStore(database).delete_old_named, HOUSEKEEPING_SECONDS
                ),
            ),
            process.background("clock", clock.measure_for_ever(database)),
            run_feed(
                process,
                database,
                FEED,
                financial.feed,
                events.prepare,
                poll_seconds=settings.feed_poll_seconds,
                page_size=settings.feed_page_size,
            ),
        ):
            yield
