"""The core banking provider over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.outcomes import Reason
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.sandbox.writes import Writes
from services.onboarding.models import PersonDetails
from services.onboarding.ports import (
    Changes,
    Closed,
    CoreCustomer,
    KnownPerson,
    LinkedAccount,
    OpenedAccount,
)

REASONS = {"already_linked": Reason.ALREADY_LINKED}


class SandboxCoreBanking:
    def __init__(self, client: ProviderClient, capabilities: Capabilities) -> None:
        self._writes = Writes(client, capabilities, REASONS)

    def create_business(
        self,
        customer_id: UUID,
        business: Business,
        persons: Sequence[PersonDetails],
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]:
        return self._writes.create_business(customer_id, business, CoreCustomer)

    def create_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_core_id: str,
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]:
        return self._writes.create_person(person_id, customer_id, persons[number], CoreCustomer)

    def change_business(self, core_id: str, changes: Changes) -> ProviderWrite[CoreCustomer]:
        return self._writes.update_customer(core_id, changes, CoreCustomer)

    def change_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails, identity_id: str
    ) -> ProviderWrite[CoreCustomer]:
        return self._writes.update_customer(known.id, changes, CoreCustomer)

    def close_business(self, core_id: str) -> ProviderWrite[Closed]:
        path = f"/customers/{segment(core_id)}/close"
        return self._writes.post("close_customer", path, {}, Closed)

    close_person = close_business

    def link_external_account(
        self, core_id: str, account: ExternalBankAccount
    ) -> ProviderWrite[LinkedAccount]:
        body = {"core_id": core_id, **account.model_dump(), "primary": True}
        return self._writes.post(
            "create_external_account", "/external-accounts", body, LinkedAccount
        )

    def close_external_account(self, external_account_id: str) -> ProviderWrite[Closed]:
        path = f"/external-accounts/{segment(external_account_id)}/close"
        return self._writes.post("close_external_account", path, {}, Closed)

    def open_account(self, core_id: str, title: str) -> ProviderWrite[OpenedAccount]:
        body = {"core_id": core_id, "account_group": "deposit", "account_title": title}
        return self._writes.post("open_account", "/accounts", body, OpenedAccount)
