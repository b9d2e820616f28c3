"""Writes that the identity provider and core banking take alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from libs.contracts.customers import Business
from libs.providers.outcomes import Reason
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.sandbox.keyed_write import KeyedWrite
from libs.providers.writing import Capabilities
from services.onboarding.models import PersonDetails
from services.onboarding.ports import Changes

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


@dataclass(frozen=True)
class Writes:
    """Makes the writes of one provider.

    Args:
        reasons: our reasons by the provider's codes; any other code is PROVIDER_REFUSED.
    """

    client: ProviderClient
    capabilities: Capabilities
    reasons: Mapping[str, Reason] = field(default_factory=dict)

    def post(
        self, operation: str, path: str, body: dict[str, Any], answer: type[AnswerT]
    ) -> KeyedWrite[AnswerT]:
        return KeyedWrite(
            self.client, self.capabilities, operation, "POST", path, body, answer, self.reasons
        )

    def create_business(
        self, customer_id: UUID, business: Business, answer: type[AnswerT]
    ) -> KeyedWrite[AnswerT]:
        body = {
            "customer_id": str(customer_id),
            "kind": "business",
            "business_customer_id": None,
            "fields": business.model_dump(),
        }
        return self.post("create_customer", "/customers", body, answer)

    def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, answer: type[AnswerT]
    ) -> KeyedWrite[AnswerT]:
        body = {
            "customer_id": str(person_id),
            "kind": "person",
            "business_customer_id": str(customer_id),
            "fields": person.model_dump(),
        }
        return self.post("create_customer", "/customers", body, answer)

    def update_customer(
        self, provider_id: str, changes: Changes, answer: type[AnswerT]
    ) -> KeyedWrite[AnswerT]:
        """The write that changes fields of a customer.

        Args:
            provider_id: the provider's own id of the customer.
        """
        path, body = f"/customers/{segment(provider_id)}", {"fields": changes}
        return KeyedWrite(
            self.client,
            self.capabilities,
            "update_customer",
            "PATCH",
            path,
            body,
            answer,
            self.reasons,
        )
