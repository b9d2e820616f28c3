"""What Increase says of an entity, in our words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from libs.providers.increase.entities import Entity
from services.onboarding.adapters.increase.verdicts import of_all
from tests.support.with_each import with_each

OWNER, OTHER = "entity_beneficial_owner_a", "entity_beneficial_owner_b"
BESIDE = "entity_1/0190a0a0-0000-7000-8000-000000000001"


def owner(owner_id: str) -> dict[str, Any]:
    address = {"line1": "1 Main St", "country": "US"}
    individual = {"name": "Ada Byron", "date_of_birth": "1980-12-10", "address": address}
    return {"id": owner_id, "individual": individual, "prongs": ["control"]}


def about(category: str, owner_id: str | None = None) -> dict[str, Any]:
    return {"category": category, category: {"beneficial_owner_id": owner_id} if owner_id else {}}


def said(
    validation: dict[str, Any] | None, *, status: str = "active"
) -> list[tuple[str, tuple[str, ...]]]:
    """The status and the codes of issues of the business, an owner, and a person who is none."""
    entity = msgspec.convert(
        {
            "id": "entity_1",
            "status": status,
            "structure": "corporation",
            "validation": validation,
            "corporation": {
                "name": "Acme",
                "address": {"line1": "1 Main St", "country": "US"},
                "beneficial_owners": [owner(OWNER), owner(OTHER)],
            },
        },
        Entity,
    )
    return [
        (one.status.value, tuple(issue.code for issue in one.issues))
        for one in of_all(entity, [OWNER, BESIDE])
    ]


def invalid(*issues: dict[str, Any]) -> dict[str, Any]:
    return {"status": "invalid", "issues": list(issues)}


APPROVED = ("approved", ())
IN_REVIEW = [("pending_review", ("in_review",)), ("pending_review", ()), APPROVED]


@with_each(
    [
        ({"status": "valid", "issues": []}, [APPROVED, APPROVED, APPROVED]),
        ({"status": "pending", "issues": []}, IN_REVIEW),
        (None, IN_REVIEW),
        ({"status": "of_a_later_release", "issues": []}, IN_REVIEW),
        (
            invalid(about("entity_tax_identifier"), about("entity_address")),
            [("awaiting_documents", ("tax_identifier", "address")), APPROVED, APPROVED],
        ),
        (
            invalid(about("beneficial_owner_identity", OWNER)),
            [APPROVED, ("awaiting_documents", ("identity",)), APPROVED],
        ),
        (
            invalid(
                about("entity_identity"),
                about("beneficial_owner_tax_identifier", OWNER),
            ),
            [
                ("awaiting_documents", ("identity",)),
                ("awaiting_documents", ("tax_identifier",)),
                APPROVED,
            ],
        ),
        (invalid(), [("awaiting_documents", ()), APPROVED, APPROVED]),
    ]
)
def test_issues_are_of_the_business_or_of_the_person_they_name(
    case: tuple[dict[str, Any] | None, Any],
) -> None:
    validation, expected = case

    assert said(validation) == expected


@pytest.mark.parametrize(
    "issue",
    [
        about("beneficial_owner_identity", OTHER),
        about("of_a_later_release", "entity_unknown"),
        about("of_a_later_release"),
        {"category": 7},
    ],
)
def test_an_issue_that_is_no_persons_of_ours_is_the_business_s(issue: dict[str, Any]) -> None:
    business, *persons = said(invalid(issue))

    assert business[0] == "awaiting_documents"
    assert persons == [APPROVED, APPROVED]


def test_a_disabled_entity_is_in_review_until_it_is_enabled() -> None:
    review = [("pending_review", ("disabled",)), ("pending_review", ()), APPROVED]

    assert said({"status": "valid", "issues": []}, status="disabled") == review
    assert said(invalid(about("entity_identity")), status="disabled") == review


def test_an_archived_entity_ends_all_verifications() -> None:
    assert said({"status": "valid", "issues": []}, status="archived") == [("canceled", ())] * 3
