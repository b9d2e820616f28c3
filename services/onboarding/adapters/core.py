"""The core banking provider over HTTP."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.http import ProviderClient, segment
from services.onboarding.adapters.writes import create_business, create_person, write
from services.onboarding.models import PersonDetails
from services.onboarding.ports import (
    Attempt,
    Changes,
    Closed,
    CoreCustomer,
    LinkedAccount,
    OpenedAccount,
)


class HttpCoreBanking:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def create_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> CoreCustomer:
        return await create_business(self._client, customer_id, business, attempt, CoreCustomer)

    async def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> CoreCustomer:
        return await create_person(
            self._client, person_id, customer_id, person, attempt, CoreCustomer
        )

    async def update_customer(
        self, core_id: str, changes: Changes, attempt: Attempt
    ) -> CoreCustomer:
        path, body = f"/customers/{segment(core_id)}", {"fields": changes}
        return await write(
            self._client, "update_customer", "PATCH", path, body, attempt, CoreCustomer
        )

    async def close_customer(self, core_id: str, attempt: Attempt) -> Closed:
        path = f"/customers/{segment(core_id)}/close"
        return await write(self._client, "close_customer", "POST", path, {}, attempt, Closed)

    async def link_external_account(
        self, core_id: str, account: ExternalBankAccount, attempt: Attempt
    ) -> LinkedAccount:
        operation, path = "create_external_account", "/external-accounts"
        body = {"core_id": core_id, **account.model_dump(), "primary": True}
        return await write(self._client, operation, "POST", path, body, attempt, LinkedAccount)

    async def close_external_account(self, external_account_id: str, attempt: Attempt) -> Closed:
        path = f"/external-accounts/{segment(external_account_id)}/close"
        return await write(
            self._client, "close_external_account", "POST", path, {}, attempt, Closed
        )

    async def open_account(self, core_id: str, title: str, attempt: Attempt) -> OpenedAccount:
        body = {"core_id": core_id, "account_group": "deposit", "account_title": title}
        return await write(
            self._client, "open_account", "POST", "/accounts", body, attempt, OpenedAccount
        )
