"""A provider's writes: sent under the attempt's key and deadline, their answers read."""

from __future__ import annotations

from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec

from libs.contracts.customers import Business
from libs.providers.answers import read_answer
from libs.providers.http import ProviderClient
from services.onboarding.models import PersonDetails
from services.onboarding.ports import Attempt

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


async def write(
    client: ProviderClient,
    operation: str,
    method: Literal["POST", "PATCH"],
    path: str,
    body: dict[str, Any],
    attempt: Attempt,
    model: type[AnswerT],
) -> AnswerT:
    """The parts of the answer that `model` names; others are left aside.

    Raises:
        ProviderRefusal, ProviderNotReached: as the client does.
        ProviderUnknown: as the client does, or the answer is of another shape, so what happened is not known.
    """
    answer = await client.write(
        operation,
        method,
        path,
        body,
        idempotency_key=str(attempt.key),
        deadline=attempt.deadline,
        resumed=attempt.resumed,
    )
    return read_answer(answer, model)


async def create_business(
    client: ProviderClient,
    customer_id: UUID,
    business: Business,
    attempt: Attempt,
    model: type[AnswerT],
) -> AnswerT:
    """A business's record, which both providers take alike."""
    body = {
        "customer_id": str(customer_id),
        "kind": "business",
        "business_customer_id": None,
        "fields": business.model_dump(),
    }
    return await write(client, "create_customer", "POST", "/customers", body, attempt, model)


async def create_person(
    client: ProviderClient,
    person_id: UUID,
    customer_id: UUID,
    person: PersonDetails,
    attempt: Attempt,
    model: type[AnswerT],
) -> AnswerT:
    """A person's record, which both providers take alike."""
    body = {
        "customer_id": str(person_id),
        "kind": "person",
        "business_customer_id": str(customer_id),
        "fields": person.model_dump(),
    }
    return await write(client, "create_customer", "POST", "/customers", body, attempt, model)
