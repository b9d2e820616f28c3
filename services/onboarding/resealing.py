"""Which columns of onboarding are sealed, and for what."""

from __future__ import annotations

from libs.contracts.customers import Business, ExternalBankAccount
from libs.contracts.sensitive import SensitiveShape
from libs.handling.resealing import Digests, SealedStore, inbox_columns
from libs.persistence.engine import Database
from libs.persistence.resealing import SealedColumn
from libs.runtime.service_settings import LOOKUP_KEYS
from services.onboarding.models import PersonDetails
from services.onboarding.redigesting import Redigesting
from services.onboarding.repository import customers, external_accounts, persons
from services.onboarding.repository.vault import Vault
from services.onboarding.settings import Settings
from services.onboarding.tables import customers as customers_table
from services.onboarding.tables import external_accounts as external_accounts_table
from services.onboarding.tables import inbox
from services.onboarding.tables import persons as persons_table


def sealed_store(settings: Settings, database: Database) -> SealedStore:
    storage = Settings.variable("storage_keys")
    shared = {peer: Settings.variable(f"{peer}_keys") for peer in ("gateway", "reconciliation")}
    columns = (
        SealedColumn(
            customers_table.c.business,
            lambda row: customers.context_of(row.customer_id),
            lambda _: storage,
            shape=lambda _: SensitiveShape.of(Business),
        ),
        SealedColumn(
            persons_table.c.details,
            lambda row: persons.context_of(row.tenant, row.person_id),
            lambda _: storage,
            shape=lambda _: SensitiveShape.of(PersonDetails),
        ),
        SealedColumn(
            external_accounts_table.c.details,
            lambda row: external_accounts.context_of(row.draft_id),
            lambda _: storage,
            shape=lambda _: SensitiveShape.of(ExternalBankAccount),
        ),
        *inbox_columns(Settings.service, inbox, shared),
    )
    rings, lookup = settings.rings(), settings.lookup()
    vault = Vault(rings[storage], lookup)
    redigesting = Redigesting(database, vault, lookup, rings[shared["gateway"]])
    digests = Digests(Settings.variable(LOOKUP_KEYS), lookup.key_ids, redigesting.renew)
    return SealedStore(columns, rings, digests)
