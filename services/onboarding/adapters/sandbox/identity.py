"""The identity provider over HTTP."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.customers import Business
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.sandbox.writes import Writes
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Changes


class SandboxIdentityProvider:
    def __init__(self, client: ProviderClient, capabilities: Capabilities) -> None:
        self._writes = Writes(client, capabilities)

    def verify_business(self, customer_id: UUID, business: Business) -> ProviderWrite[Verification]:
        return self._writes.create_business(customer_id, business, Verification)

    def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails
    ) -> ProviderWrite[Verification]:
        return self._writes.create_person(person_id, customer_id, person, Verification)

    def update(self, identity_id: str, changes: Changes) -> ProviderWrite[Verification]:
        return self._writes.update_customer(identity_id, changes, Verification)

    def cancel(self, identity_id: str) -> ProviderWrite[Verification]:
        path = f"/customers/{segment(identity_id)}/cancel"
        return self._writes.post("cancel_customer", path, {}, Verification)
