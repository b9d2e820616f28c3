"""What Increase says of a business and its persons, as our verifications.

| entity | the business | a person |
|---|---|---|
| archived, which is final | `canceled` | `canceled` |
| disabled, which is for a time; not validated, or being validated | `pending_review` | `pending_review` |
| valid | `approved` | `approved` |
| invalid | `awaiting_documents`; `approved` if all issues are persons' | `awaiting_documents` if an issue is its own |

A program that Increase does not validate entities for leaves a customer in review: nothing is opened unverified.

Increase numbers no versions. Those that are made here are 0, older than all: an answer to a write is known to be the
newest only until its step is stored. What comes later is told by an event, and `current` is asked by a command that is
driven when no other one changes the customer, so that readings are stored in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from libs.contracts.customers import CustomerStatus
from libs.providers.increase import entities
from libs.providers.increase.entities import Entity, Issue
from services.onboarding.models import ProviderIssue, Verification

VERSION = 0
NOT_PHYSICAL = ProviderIssue("address", "The address is a mailbox, or otherwise no physical one.")
IDENTITY = ProviderIssue("identity", "The identity could not be verified.")
ISSUES = {
    "entity_tax_identifier": ProviderIssue(
        "tax_identifier", "The tax identifier could not be verified."
    ),
    "entity_address": NOT_PHYSICAL,
    "entity_identity": IDENTITY,
    "beneficial_owner_identity": IDENTITY,
    "beneficial_owner_address": NOT_PHYSICAL,
    "beneficial_owner_tax_identifier": ProviderIssue(
        "tax_identifier", "The whole tax identifier is required."
    ),
}
OTHER = ProviderIssue("other", "The bank wants more information.")
IN_REVIEW = ProviderIssue("in_review", "The bank validates the customer and its persons.")
DISABLED = ProviderIssue("disabled", "The bank has disabled the customer for a time.")
_BESIDE = "/"


def beside(entity_id: str, person_id: UUID) -> str:
    """The identity of a person who neither controls the business nor owns 25 %, and so is no beneficial owner."""
    return f"{entity_id}{_BESIDE}{person_id}"


def is_beside(identity_id: str) -> bool:
    return _BESIDE in identity_id


def of_business(entity: Entity, owner_ids: Collection[str]) -> Verification:
    """The verdict on the business: that of the entity, without its owners' issues.

    Args:
        owner_ids: the owners whose issues our persons have.
    """
    status, issues = _of_entity(entity), _issues(entity)
    theirs = [issue for issue in issues if issue.owner_id not in owner_ids]
    if status is CustomerStatus.AWAITING_DOCUMENTS and issues and not theirs:
        status = CustomerStatus.APPROVED
    return _verification(entity, entity.id, status, theirs)


def of_person(entity: Entity, identity_id: str) -> Verification:
    """The verdict on one person: that of the entity, by the person's own issues.

    Args:
        identity_id: an owner's id, or made by `beside`.
    """
    status = _of_entity(entity)
    theirs = [issue for issue in _issues(entity) if issue.owner_id == identity_id]
    has_no_issue = status is CustomerStatus.AWAITING_DOCUMENTS and not theirs
    if has_no_issue or (status is CustomerStatus.PENDING_REVIEW and is_beside(identity_id)):
        status = CustomerStatus.APPROVED
    return _verification(entity, identity_id, status, theirs)


def of_all(entity: Entity, person_identity_ids: Sequence[str]) -> list[Verification]:
    """The business's, and those of its persons; without that of an owner that the entity does not have any more."""
    owners = {owner.id for owner in entity.owners}
    known = [each for each in person_identity_ids if is_beside(each) or each in owners]
    return [
        of_business(entity, known),
        *(of_person(entity, identity_id) for identity_id in known),
    ]


def _of_entity(entity: Entity) -> CustomerStatus:
    validation = entity.validation.status if entity.validation else None
    match entity.status, validation:
        case entities.ARCHIVED, _:
            return CustomerStatus.CANCELED
        case entities.ACTIVE, entities.VALID:
            return CustomerStatus.APPROVED
        case entities.ACTIVE, entities.INVALID:
            return CustomerStatus.AWAITING_DOCUMENTS
        case _:
            return CustomerStatus.PENDING_REVIEW


def _issues(entity: Entity) -> list[Issue]:
    return entity.validation.read_issues() if entity.validation else []


def _verification(
    entity: Entity, identity_id: str, status: CustomerStatus, issues: Sequence[Issue]
) -> Verification:
    """While Increase names no issue, the business has one that says why it is not approved."""
    shown = tuple(dict.fromkeys(ISSUES.get(issue.category, OTHER) for issue in issues))
    is_business = identity_id == entity.id
    match status:
        case CustomerStatus.AWAITING_DOCUMENTS:
            pass
        case CustomerStatus.PENDING_REVIEW if is_business:
            shown = (DISABLED if entity.status == entities.DISABLED else IN_REVIEW,)
        case _:
            shown = ()
    return Verification(identity_id, status, VERSION, shown)
