"""The core banking provider over HTTP."""

from __future__ import annotations

from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.http import ProviderClient, segment
from services.onboarding.adapters.answers import read_answer
from services.onboarding.models import PersonDetails
from services.onboarding.ports import (
    Attempt,
    Changes,
    Closed,
    CoreCustomer,
    LinkedAccount,
    OpenedAccount,
)

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


class HttpCoreBanking:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def create_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> CoreCustomer:
        body = {
            "customer_id": str(customer_id),
            "kind": "business",
            "business_customer_id": None,
            "fields": business.model_dump(),
        }
        return await self._post("create_customer", "/customers", body, attempt, CoreCustomer)

    async def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> CoreCustomer:
        body = {
            "customer_id": str(person_id),
            "kind": "person",
            "business_customer_id": str(customer_id),
            "fields": person.model_dump(),
        }
        return await self._post("create_customer", "/customers", body, attempt, CoreCustomer)

    async def update_customer(
        self, core_id: str, changes: Changes, attempt: Attempt
    ) -> CoreCustomer:
        path = f"/customers/{segment(core_id)}"
        answer = await self._write("update_customer", "PATCH", path, {"fields": changes}, attempt)
        return read_answer(answer, CoreCustomer)

    async def close_customer(self, core_id: str, attempt: Attempt) -> Closed:
        path = f"/customers/{segment(core_id)}/close"
        return await self._post("close_customer", path, {}, attempt, Closed)

    async def link_external_account(
        self, core_id: str, account: ExternalBankAccount, attempt: Attempt
    ) -> LinkedAccount:
        body = {"core_id": core_id, **account.model_dump(), "primary": True}
        return await self._post(
            "create_external_account", "/external-accounts", body, attempt, LinkedAccount
        )

    async def close_external_account(self, external_account_id: str, attempt: Attempt) -> Closed:
        path = f"/external-accounts/{segment(external_account_id)}/close"
        return await self._post("close_external_account", path, {}, attempt, Closed)

    async def open_account(self, core_id: str, title: str, attempt: Attempt) -> OpenedAccount:
        body = {"core_id": core_id, "account_group": "deposit", "account_title": title}
        return await self._post("open_account", "/accounts", body, attempt, OpenedAccount)

    async def _post(
        self,
        operation: str,
        path: str,
        body: dict[str, Any],
        attempt: Attempt,
        model: type[AnswerT],
    ) -> AnswerT:
        return read_answer(await self._write(operation, "POST", path, body, attempt), model)

    async def _write(
        self,
        operation: str,
        method: Literal["POST", "PATCH"],
        path: str,
        body: dict[str, Any],
        attempt: Attempt,
    ) -> Any:
        return await self._client.write(
            operation,
            method,
            path,
            body,
            idempotency_key=str(attempt.key),
            deadline=attempt.deadline,
            resumed=attempt.resumed,
        )
