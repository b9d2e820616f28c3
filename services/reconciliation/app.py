"""Composition: queries to our services, the providers' lists, the comparisons, and the runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from libs.contracts import reconciliation_operations as table
from libs.handling import clock
from libs.handling.audit_head import log_head_for_ever
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import run_queries
from libs.handling.query_client import QueryClient
from libs.handling.servers import BROKER_WAIT_SECONDS, broker_of, database_of
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.service_client import ServiceClient
from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.runtime.process import Process
from services.reconciliation.adapters.feeds import FeedPositions
from services.reconciliation.adapters.our_services import OnboardingQueries, PaymentsQueries
from services.reconciliation.handlers.balances import BalanceComparison
from services.reconciliation.handlers.books import Books
from services.reconciliation.handlers.comparison import Comparison, page_size
from services.reconciliation.handlers.contradictions import ContradictionComparison
from services.reconciliation.handlers.customers import CustomerComparison, CustomerLists
from services.reconciliation.handlers.deposit_locations import DepositLocationComparison
from services.reconciliation.handlers.external_accounts import ExternalAccountComparison
from services.reconciliation.handlers.feeds import FeedComparison
from services.reconciliation.handlers.holders import (
    external_accounts_with_holders,
    lists_with_holders,
)
from services.reconciliation.handlers.operating import OperatingDifferences
from services.reconciliation.handlers.queries import Queries
from services.reconciliation.handlers.running import Reconciler
from services.reconciliation.handlers.stored_answers import StoredAnswerComparison
from services.reconciliation.handlers.wires import WireComparison
from services.reconciliation.metrics import measure_for_ever
from services.reconciliation.ports import ProviderList, Providers
from services.reconciliation.providers import open_providers
from services.reconciliation.sensitive_digests import digest_by
from services.reconciliation.settings import Settings
from services.reconciliation.waiting import COUNTS

ASK_SECONDS = 15.0
"""How long a service may take to answer one page."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    sealer = settings.message_sealer()
    broker = broker_of(settings, process)
    service_client = ServiceClient(sealer)
    broker.add(service_client)
    database = database_of(settings, process)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        providers = await open_providers(settings, opened)
        query_client = QueryClient(service_client, patience_seconds=ASK_SECONDS)
        reconciler = Reconciler(
            database,
            comparisons(settings, database, query_client, providers),
            run_seconds=settings.run_seconds,
            run_limit_seconds=settings.run_limit_seconds,
            grace_seconds=settings.grace_seconds,
            poll_seconds=settings.poll_seconds,
        )
        await opened.enter_async_context(broker.open())
        depths = QueueDepths(process.service)
        queries = {
            table.START_RUN.name: Queries(database).start_run,
            **OperatingDifferences(database).by_operation(),
            **operating_handlers(process.service, database, depths=depths, counts=COUNTS),
        }
        await opened.enter_async_context(
            run_queries(process, sealer, broker, queries, settings.query_queues)
        )
        broker.add(depths)
        await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
        async with (
            process.background("metrics", measure_for_ever(database)),
            process.background("audit-head", log_head_for_ever(database)),
            process.background("clock", clock.measure_for_ever(database)),
            process.background("runs", reconciler.run_for_ever()),
        ):
            yield


def comparisons(
    settings: Settings,
    database: Database,
    query_client: QueryClient,
    providers: Providers,
) -> list[Comparison]:
    """In the order in which a run makes them: postings come before the comparisons that use them.

    What a provider cannot be asked about is not compared.
    """
    size = settings.page_size
    identity, core, financial = providers.identity, providers.core, providers.financial
    wires_size = page_size(size, core.wires)
    payments = PaymentsQueries(query_client, wires_size)

    def onboarding(*looked_up: ProviderList[Any]) -> OnboardingQueries:
        return OnboardingQueries(query_client, page_size(settings.customers_page_size, *looked_up))

    of_customers = onboarding(identity.customers, core.customers, core.accounts)
    lists = lists_with_holders(
        CustomerLists(
            identity=identity.customers,
            core=core.customers,
            accounts=core.accounts,
        ),
        of_customers,
    )
    of_external_accounts = onboarding(core.external_accounts)
    external_accounts = external_accounts_with_holders(core.external_accounts, of_external_accounts)
    digest = digest_by(settings.onboarding_keys.get_secret_value())
    ledger, balances = financial.books, financial.balances
    books = Books(database, ledger, page_size=size) if ledger is not None else None
    newest = {
        Role.IDENTITY: identity.newest_entry,
        Role.CORE: core.newest_entry,
        Role.FINANCIAL: financial.newest_entry,
    }
    wires = WireComparison(
        payments, core.wires, books if core.posts_wires else None, page_size=wires_size
    )
    made: list[Comparison | None] = [
        FeedComparison(
            database, FeedPositions(query_client, newest), still_seconds=settings.feed_still_seconds
        ),
        BalanceComparison(books, balances, page_size=size) if books and balances else None,
        CustomerComparison(of_customers, lists, digest),
        ExternalAccountComparison(of_external_accounts, external_accounts, digest),
        StoredAnswerComparison(
            onboarding(core.accounts, core.external_accounts), core.accounts, core.external_accounts
        ),
        wires,
        ContradictionComparison(database, payments, wires),
        DepositLocationComparison(database, ledger) if ledger is not None else None,
    ]
    return [comparison for comparison in made if comparison is not None]
