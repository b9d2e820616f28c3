"""The identity provider over HTTP."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

import msgspec

from libs.contracts.customers import Business
from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.sandbox.writes import Writes
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Changes, KnownPerson


class SandboxIdentityProvider:
    def __init__(self, client: ProviderClient, capabilities: Capabilities) -> None:
        self._client = client
        self._writes = Writes(client, capabilities)

    def verify_business(
        self, customer_id: UUID, business: Business, persons: Sequence[PersonDetails]
    ) -> ProviderWrite[Verification]:
        return self._writes.create_business(customer_id, business, Verification)

    def verify_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_identity_id: str,
    ) -> ProviderWrite[Verification]:
        return self._writes.create_person(person_id, customer_id, persons[number], Verification)

    def update_business(self, identity_id: str, changes: Changes) -> ProviderWrite[Verification]:
        return self._writes.update_customer(identity_id, changes, Verification)

    def update_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails
    ) -> ProviderWrite[Verification]:
        return self._writes.update_customer(known.id, changes, Verification)

    def cancel_business(self, identity_id: str) -> ProviderWrite[Verification]:
        path = f"/customers/{segment(identity_id)}/cancel"
        return self._writes.post("cancel_customer", path, {}, Verification)

    cancel_person = cancel_business

    async def current(
        self, identity_id: str, person_identity_ids: Sequence[str]
    ) -> list[Verification]:
        deadline = time.time() + FETCH_SECONDS
        return [await self._read(each, deadline) for each in (identity_id, *person_identity_ids)]

    async def _read(self, identity_id: str, deadline: float) -> Verification:
        path = f"/customers/{segment(identity_id)}"
        try:
            answer = await self._client.read("get_customer", path, (), deadline=deadline)
            return msgspec.convert(answer, Verification)
        except (ProviderRefusal, msgspec.ValidationError) as error:
            raise ProviderError from error
