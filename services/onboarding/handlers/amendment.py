"""Writing an update to both providers: identity first, then core banking; both or neither, as far as they allow."""

from __future__ import annotations

from functools import partial

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import InvalidState
from libs.contracts.model import Model
from services.onboarding import amending, states
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerFile, CustomerRecord, PersonRecord, Verification
from services.onboarding.ports import CoreCustomer
from services.onboarding.saga import Saga, StepRefused


def refuse_when_final(customer: CustomerRecord) -> None:
    """Raises InvalidState: a denied or canceled customer is not changed any more."""
    if customer.status in states.FINAL:
        raise InvalidState(f"The customer is {customer.status}.")


async def write_to_providers(
    parts: Parts, saga: Saga, subject: CustomerRecord | PersonRecord, before: Model, after: Model
) -> Verification:
    """What the identity provider then says of the subject.

    Core banking is passed over while it does not have the customer: it gets the updated one later.

    Raises:
        NothingSent: no provider was reached.
        StepRefused: one refused; the other is restored.
        OutcomePending: run the saga again.
    """
    assert subject.verification is not None, "an undecided customer's update waits for onboarding"
    identity_id = subject.verification.identity_id
    new, old = amending.changes(before, after)
    verification = await saga.first_step(
        "update_identity", Verification, partial(parts.identity.update, identity_id, new)
    )
    if subject.core_id is not None:
        try:
            await saga.step(
                "update_core",
                CoreCustomer,
                partial(parts.core.update_customer, subject.core_id, new),
            )
        except StepRefused:
            await saga.compensate(
                "restore_identity", Verification, partial(parts.identity.update, identity_id, old)
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
    status = states.overall(file.verifications)
    if status is CustomerStatus.APPROVED or not states.may_follow(file.customer.status, status):
        return None
    return status
