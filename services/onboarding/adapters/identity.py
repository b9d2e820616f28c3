"""The identity provider over HTTP."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from libs.contracts.customers import Business
from libs.providers.http import ProviderClient, segment
from services.onboarding.adapters.answers import read_answer
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Attempt, Changes


class HttpIdentityProvider:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def verify_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> Verification:
        body = {
            "customer_id": str(customer_id),
            "kind": "business",
            "business_customer_id": None,
            "fields": business.model_dump(),
        }
        return await self._write("create_customer", "POST", "/customers", body, attempt)

    async def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> Verification:
        body = {
            "customer_id": str(person_id),
            "kind": "person",
            "business_customer_id": str(customer_id),
            "fields": person.model_dump(),
        }
        return await self._write("create_customer", "POST", "/customers", body, attempt)

    async def update(self, identity_id: str, changes: Changes, attempt: Attempt) -> Verification:
        path = f"/customers/{segment(identity_id)}"
        return await self._write("update_customer", "PATCH", path, {"fields": changes}, attempt)

    async def cancel(self, identity_id: str, attempt: Attempt) -> Verification:
        path = f"/customers/{segment(identity_id)}/cancel"
        return await self._write("cancel_customer", "POST", path, {}, attempt)

    async def _write(
        self,
        operation: str,
        method: Literal["POST", "PATCH"],
        path: str,
        body: dict[str, Any],
        attempt: Attempt,
    ) -> Verification:
        answer = await self._client.write(
            operation,
            method,
            path,
            body,
            idempotency_key=str(attempt.key),
            deadline=attempt.deadline,
            resumed=attempt.resumed,
        )
        return read_answer(answer, Verification)
