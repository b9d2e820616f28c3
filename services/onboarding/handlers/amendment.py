"""Writing an update to both providers: identity first, then core banking; both or neither, as far as they allow."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import InvalidState
from libs.contracts.model import Model
from libs.handling.commands import NeedsOperator
from services.onboarding import amending, states
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerFile, CustomerRecord, PersonRecord, Verification
from services.onboarding.ports import CoreCustomer
from services.onboarding.repository import steps
from services.onboarding.saga import Saga, StepRefused


def refuse_when_final(customer: CustomerRecord) -> None:
    """Raises InvalidState: a denied or canceled customer is not changed any more."""
    if customer.status in states.FINAL:
        raise InvalidState(f"The customer is {customer.status}.")


async def refuse_to_overtake(
    connection: AsyncConnection, customer: CustomerRecord, saga_id: UUID
) -> None:
    """Changes of one customer are made in their order, also when an operator has to decide on one of them.

    Raises:
        NeedsOperator: an earlier change is not over. Commands of one customer are driven one at a time, so that it is
            parked or was abandoned, and would be overtaken.
    """
    if await steps.is_another_unfinished(
        connection, customer.tenant, customer.customer_id, saga_id
    ):
        raise NeedsOperator(
            "An earlier change of the customer has a step whose outcome is not known: resolve the step, have the"
            " earlier command finished, then have this one retried."
        )


async def write_to_providers(
    parts: Parts, saga: Saga, subject: CustomerRecord | PersonRecord, before: Model, after: Model
) -> Verification:
    """What the identity provider then says of the subject.

    Core banking is passed over while it does not have the customer: it gets the updated one later.

    Raises:
        NothingSent: no provider was reached.
        StepRefused: one refused; the other is restored.
        OutcomePending: run the saga again.
        NeedsOperator: a provider may have forgotten a step of unknown outcome.
    """
    assert subject.verification is not None, "an undecided customer's update waits for onboarding"
    identity_id = subject.verification.identity_id
    new, old = amending.changes(before, after)
    verification = await saga.first_step(
        "update_identity", Verification, parts.identity.update(identity_id, new)
    )
    if subject.core_id is not None:
        try:
            await saga.step(
                "update_core",
                CoreCustomer,
                parts.core.update_customer(subject.core_id, new),
            )
        except StepRefused:
            await saga.compensate(
                "restore_identity", Verification, parts.identity.update(identity_id, old)
            )
            raise
    return verification


def is_news(known: Verification | None, answer: Verification) -> bool:
    """Whether an update's answer says something new that is to be taken over at once.

    An approval is left to the feed, which carries every status: it may have to open the customer.
    """
    return (
        known is not None
        and answer.version > known.version
        and answer.status is not CustomerStatus.APPROVED
    )


def follow(file: CustomerFile) -> CustomerStatus | None:
    """Where an update's answer takes the customer; None: it stays. Approval comes by a decision only."""
    verdict = states.overall(file.verifications)
    if verdict is CustomerStatus.APPROVED:
        return None
    return states.following(file.customer.status, verdict)
