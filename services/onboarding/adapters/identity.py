"""The identity provider over HTTP."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.customers import Business
from libs.providers.http import ProviderClient, segment
from services.onboarding.adapters.writes import create_business, create_person, write
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Attempt, Changes


class HttpIdentityProvider:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def verify_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> Verification:
        return await create_business(self._client, customer_id, business, attempt, Verification)

    async def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> Verification:
        return await create_person(
            self._client, person_id, customer_id, person, attempt, Verification
        )

    async def update(self, identity_id: str, changes: Changes, attempt: Attempt) -> Verification:
        path, body = f"/customers/{segment(identity_id)}", {"fields": changes}
        return await write(
            self._client, "update_customer", "PATCH", path, body, attempt, Verification
        )

    async def cancel(self, identity_id: str, attempt: Attempt) -> Verification:
        path = f"/customers/{segment(identity_id)}/cancel"
        return await write(self._client, "cancel_customer", "POST", path, {}, attempt, Verification)
