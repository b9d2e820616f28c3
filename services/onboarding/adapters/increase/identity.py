"""Identity verification at Increase: an entity is validated when it is made or changed, with its beneficial owners."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from libs.contracts.customers import Business, CustomerStatus
from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.entities import Entity, retrieve_entity
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.increase import verdicts
from services.onboarding.adapters.increase.customers import Customers
from services.onboarding.adapters.increase.unkeyed_writes import Known
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Changes, KnownPerson


class IncreaseIdentityProvider:
    """See `ports.IdentityProvider`."""

    def __init__(self, client: IncreaseClient, capabilities: Capabilities) -> None:
        self._client = client
        self._capabilities = capabilities
        self._customers = Customers(client, capabilities, _verification)

    def verify_business(
        self, customer_id: UUID, business: Business, persons: Sequence[PersonDetails]
    ) -> ProviderWrite[Verification]:
        return self._customers.create(customer_id, business, persons)

    def verify_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_identity_id: str,
    ) -> ProviderWrite[Verification]:
        return self._customers.person(business_identity_id, person_id, persons, number)

    def update_business(self, identity_id: str, changes: Changes) -> ProviderWrite[Verification]:
        return self._customers.update_business(identity_id, changes)

    def update_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails
    ) -> ProviderWrite[Verification]:
        return self._customers.update_person(known, changes, person)

    def cancel_business(self, identity_id: str) -> ProviderWrite[Verification]:
        return self._customers.archive(identity_id)

    def cancel_person(self, identity_id: str) -> ProviderWrite[Verification]:
        """Owners go with their entity, which is archived by the step of the business."""
        canceled = Verification(identity_id, CustomerStatus.CANCELED, verdicts.VERSION)
        return Known("cancel_owner", self._capabilities, canceled)

    async def current(
        self, identity_id: str, person_identity_ids: Sequence[str]
    ) -> list[Verification]:
        try:
            entity = await self._client.read(
                "get_entity",
                lambda sdk: retrieve_entity(sdk, identity_id),
                deadline=time.time() + FETCH_SECONDS,
            )
        except ProviderRefusal as refusal:
            raise ProviderError from refusal
        return verdicts.of_all(entity, person_identity_ids)


def _verification(entity: Entity, identity_id: str) -> Verification:
    if identity_id == entity.id:
        return verdicts.of_business(entity, {owner.id for owner in entity.owners})
    return verdicts.of_person(entity, identity_id)
