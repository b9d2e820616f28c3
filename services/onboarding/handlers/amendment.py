"""Writing an update to both providers: identity first, then core banking; both or neither, as far as they allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar
from uuid import UUID

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import AlreadyExists, Invalid, InvalidState
from libs.contracts.model import Model
from libs.handling.parking import NeedsOperator
from libs.persistence.async_engine import AsyncConnection
from libs.providers.outcomes import Reason
from libs.providers.writing import ProviderWrite
from services.onboarding import amending, states
from services.onboarding.handlers.parts import Parts
from services.onboarding.handlers.verdicts import follow_verdict, issues_of
from services.onboarding.models import CustomerFile, CustomerRecord, Verification
from services.onboarding.ports import Changes, CoreCustomer
from services.onboarding.repository import steps
from services.onboarding.saga import Saga, StepRefused

UPDATE_IDENTITY = "update_identity"

ModelT = TypeVar("ModelT", bound=Model)


def taken(detail: str, holder: UUID) -> AlreadyExists:
    """The EIN, or the id of a person, is another customer's, which is named."""
    return AlreadyExists(detail, extra={"customer_id": str(holder)})


def refuse_when_final(customer: CustomerRecord) -> None:
    """Raises InvalidState: a denied or canceled customer is not changed any more."""
    if customer.status in states.FINAL:
        raise InvalidState(f"The customer is {customer.status}.")


async def refuse_what_has_begun(
    connection: AsyncConnection, tenant: str, saga_id: UUID, refused: Invalid
) -> NoReturn:
    """Say that this release does not accept what a change makes of a record, though an earlier one did: a provider may
    have the change, and the caller must not be told that nothing was done.

    Raises:
        StepRefused: the identity provider does not have it.
        NeedsOperator: otherwise.
    """
    words = await steps.refusal_of(connection, tenant, saga_id, UPDATE_IDENTITY)
    if words is not None:
        raise StepRefused(UPDATE_IDENTITY, Reason.PROVIDER_REFUSED, words) from refused
    places = ", ".join(".".join(map(str, item["loc"])) for item in refused.errors)
    raise NeedsOperator(
        f"A provider may have this change, and this release does not accept what it makes of the record ({places}):"
        " have the command retried by the release that accepted it."
    ) from refused


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


@dataclass(frozen=True)
class Amendment(Generic[ModelT]):
    """A change of a business or a person, and how providers are told.

    Args:
        at_identity, at_core: the write by the provider's id, the changed fields, and the whole as it is to be; for core
            banking also by the identity id that the identity provider's answer has.
        core_id: None while core banking does not have the customer: it gets the changed one later.
    """

    before: ModelT
    after: ModelT
    identity_id: str
    core_id: str | None
    at_identity: Callable[[str, Changes, ModelT], ProviderWrite[Verification]]
    at_core: Callable[[str, Changes, ModelT, str], ProviderWrite[CoreCustomer]]


@dataclass(frozen=True)
class Written:
    """What the providers then say. `core`: None where core banking was not told."""

    verification: Verification
    core: CoreCustomer | None


REFUSED = "The identity provider refused the change; nothing was changed."
REFUSED_BY_CORE = "Core banking refused the change, and it does not take effect."


class NotAmended(Exception):
    """Core banking refused. `words`: see `Refused.words`; `verification`: what the identity provider said last, after
    the change was taken back there, or after the change where taking it back was refused.
    """

    def __init__(self, words: str, verification: Verification) -> None:
        super().__init__("core banking refused the change")
        self.words = words
        self.verification = verification


async def write_to_providers(saga: Saga, amendment: Amendment[ModelT]) -> Written:
    """Write the amendment to the identity provider, then to core banking. On a refusal by core banking, restore the
    identity provider.

    Raises:
        NothingSent: no provider was reached.
        StepRefused: the identity provider refused.
        NotAmended: core banking refused.
        OutcomePending: run the saga again.
        NeedsOperator: a provider may have forgotten a step of unknown outcome.
    """
    before, after = amendment.before, amendment.after
    new, old = amending.changes(before, after)
    verification = await saga.step_of_unknown_saga(
        UPDATE_IDENTITY,
        Verification,
        amendment.at_identity(amendment.identity_id, new, after),
    )
    if amendment.core_id is None:
        return Written(verification, None)
    try:
        core = await saga.step(
            "update_core",
            CoreCustomer,
            amendment.at_core(amendment.core_id, new, after, verification.identity_id),
        )
    except StepRefused as refused:
        restored = await saga.compensate(
            "restore_identity",
            Verification,
            amendment.at_identity(verification.identity_id, old, before),
        )
        raise NotAmended(refused.words, restored or verification) from refused
    return Written(verification, core)


def identity_id_of(verification: Verification | None) -> str:
    assert verification is not None, "an undecided customer's update waits for onboarding"
    return verification.identity_id


def is_news(known: Verification | None, answer: Verification) -> bool:
    """Whether an update's answer says something new that is to be taken over at once.

    An approval is left to the feed, which carries every status: it may have to open the customer.
    """
    return known is not None and (
        answer.identity_id != known.identity_id
        or (answer.version > known.version and answer.status is not CustomerStatus.APPROVED)
    )


async def follow_answer(
    connection: AsyncConnection, parts: Parts, before: CustomerFile, file: CustomerFile
) -> CustomerFile:
    """As `follow_verdict`, after an update's answer was taken over. Approval comes by a decision only.

    Args:
        before: the customer as it was before that.
    """
    verdict = file.verdict
    if verdict is CustomerStatus.APPROVED:
        return file
    is_wanted = verdict is file.customer.status is CustomerStatus.AWAITING_DOCUMENTS
    if is_wanted and issues_of(file) != issues_of(before):
        # The last event tells of what was wanted before.
        await parts.events.of_customer(connection, states.EVENTS[verdict], file.customer)
    return await follow_verdict(connection, parts, file)
