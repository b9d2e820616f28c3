"""Composition: commands and queries of the table, the providers, the tails of their feeds, the outbox, continuity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from libs.contracts import onboarding_operations as table
from libs.handling.commands import CommandHandler, run_commands
from libs.handling.continuity import RequestedReconciliation
from libs.handling.feeds import run_feed
from libs.handling.key_checks import require_known_keys
from libs.handling.operating.letters import OwnLetters
from libs.handling.operating.serving import operating_handlers
from libs.handling.operating.waiting import measure_for_ever
from libs.handling.outbox_relay import run_relay
from libs.handling.queries import QueryHandler, run_queries
from libs.handling.servers import BROKER_WAIT_SECONDS, broker_of, database_of
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.service_client import ServiceClient
from libs.persistence.continuity import Continuity, NewestRecords
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.providers.companies import Role
from libs.providers.newest_records import FetchNewest
from libs.runtime.process import Process
from libs.runtime.service_settings import LOOKUP_KEYS
from services.onboarding.abandoning import why_not_abandoned
from services.onboarding.events import Events
from services.onboarding.handlers.add_external_bank_account import AddExternalBankAccountHandler
from services.onboarding.handlers.apply_decision import ApplyDecisionHandler
from services.onboarding.handlers.denial import Denial
from services.onboarding.handlers.feeds import (
    FINANCIAL_FEED,
    IDENTITY_FEED,
    prepare_financial,
    prepare_identity,
)
from services.onboarding.handlers.onboard_customer import OnboardCustomerHandler
from services.onboarding.handlers.opening import Opening
from services.onboarding.handlers.operating import OperatingCustomers
from services.onboarding.handlers.parts import Parts
from services.onboarding.handlers.queries import Queries
from services.onboarding.handlers.reconcile_queries import ReconcileQueries
from services.onboarding.handlers.request_steps import find_own_steps
from services.onboarding.handlers.update_business import UpdateBusinessHandler
from services.onboarding.handlers.update_person import UpdatePersonHandler
from services.onboarding.housekeeping import keep_house
from services.onboarding.ids import DECISION
from services.onboarding.ordering import UNORDERED, CustomerOrdering
from services.onboarding.providers import open_providers
from services.onboarding.replaying import accept_anew
from services.onboarding.repository import step_dates
from services.onboarding.repository.lookup_keys import introduce
from services.onboarding.repository.missing import compare_at_core, compare_at_identity
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.onboarding.resealing import sealed_store
from services.onboarding.saga import STEP_SECONDS
from services.onboarding.settings import Settings
from services.onboarding.waiting import COUNTS


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    sealer = settings.message_sealer()
    lookup = settings.lookup()
    store = Store(Vault(settings.ring("storage_keys"), lookup))
    broker = broker_of(settings, process)
    service_client = ServiceClient(sealer)
    broker.add(service_client)
    database = database_of(settings, process)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        await until_available(
            "lookup-keys", partial(introduce, database, lookup, settings.variable(LOOKUP_KEYS))
        )
        await require_known_keys(database, settings)
        providers = await open_providers(settings, opened)
        parts = Parts(providers.identity.writes, providers.core.writes, store, Events(store))
        transit_seconds = settings.provider_transit_seconds + STEP_SECONDS
        depths = QueueDepths(process.service)
        queries = {
            **query_handlers(database, store, transit_seconds=transit_seconds),
            **operating_query_handlers(settings, process.service, database, store, depths),
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
                command_handlers(parts),
                CustomerOrdering(store),
                lease_seconds=settings.lease_seconds,
                unordered=UNORDERED,
                hastens=False,  # `continuity` follows setbacks of the clock
            )
        )
        await opened.enter_async_context(
            process.background(
                "saga-housekeeping", keep_house(database, step_days=settings.saga_step_days)
            )
        )
        await opened.enter_async_context(
            process.background(
                "continuity",
                continuity_of(
                    database,
                    providers.identity.newest,
                    providers.core.newest,
                    transit_seconds=transit_seconds,
                    went_back=RequestedReconciliation(service_client, process.service),
                ).watch(),
            )
        )
        await opened.enter_async_context(
            process.background("waiting", measure_for_ever(database, COUNTS))
        )
        broker.add(depths)
        await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
        async with (
            run_feed(
                process,
                database,
                IDENTITY_FEED,
                providers.identity.feed,
                prepare_identity,
                poll_seconds=settings.feed_poll_seconds,
                page_size=settings.feed_page_size,
            ),
            run_feed(
                process,
                database,
                FINANCIAL_FEED,
                providers.financial.feed,
                prepare_financial,
                poll_seconds=settings.feed_poll_seconds,
                page_size=settings.feed_page_size,
            ),
        ):
            yield


def command_handlers(parts: Parts) -> Mapping[str, CommandHandler]:
    denial = Denial(parts)
    opening = Opening(parts, denial)
    return {
        table.ONBOARD_CUSTOMER.name: OnboardCustomerHandler(parts, opening, denial),
        table.UPDATE_BUSINESS.name: UpdateBusinessHandler(parts),
        table.UPDATE_PERSON.name: UpdatePersonHandler(parts),
        table.ADD_EXTERNAL_BANK_ACCOUNT.name: AddExternalBankAccountHandler(parts),
        DECISION: ApplyDecisionHandler(parts, opening),
    }


def query_handlers(
    database: Database, store: Store, *, transit_seconds: float
) -> Mapping[str, QueryHandler]:
    """The queries of customers, those of operators among them."""
    queries = Queries(database, store)
    return {
        table.GET_CUSTOMER.name: queries.get_customer,
        table.LIST_CUSTOMERS.name: queries.list_customers,
        table.FIND_ACCOUNT_OWNER.name: queries.find_account_owner,
        table.FIND_EXTERNAL_ACCOUNT.name: queries.find_external_account,
        table.LIST_OWNED_ACCOUNTS.name: queries.list_owned_accounts,
        table.FIND_CUSTOMER.name: queries.find_customer,
        table.FIND_ACCOUNT_HOLDERS.name: queries.find_account_holders,
        table.LIST_LINKED_EXTERNAL_ACCOUNTS.name: queries.list_linked_external_accounts,
        **ReconcileQueries(database, store.vault).by_operation(),
        **OperatingCustomers(database, store, transit_seconds=transit_seconds).by_operation(),
    }


def operating_query_handlers(
    settings: Settings, service: str, database: Database, store: Store, depths: QueueDepths
) -> Mapping[str, QueryHandler]:
    """The queries of operators that every service answers."""
    letters = OwnLetters(
        settings.amqp_url.get_secret_value(),
        settings.amqp_ca_file,
        accept_anew(service, database, store, settings.message_sealer()),
    )
    return operating_handlers(
        service,
        database,
        depths=depths,
        letters=letters,
        sealed=sealed_store(settings, database),
        why_not_abandoned=why_not_abandoned,
        counts=COUNTS,
        own_steps=find_own_steps,
    )


def continuity_of(
    database: Database,
    identity: FetchNewest,
    core: FetchNewest,
    *,
    transit_seconds: float,
    went_back: Callable[[], Awaitable[None]] | None = None,
) -> Continuity:
    sources = [
        NewestRecords(Role.IDENTITY, identity, compare_at_identity),
        NewestRecords(Role.CORE, core, compare_at_core),
    ]
    return Continuity(
        database,
        sources,
        transit_seconds=transit_seconds,
        went_back=went_back,
        date_back=step_dates.date_back,
    )
