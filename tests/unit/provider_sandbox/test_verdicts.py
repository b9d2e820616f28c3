from __future__ import annotations

import pytest

from services.provider_sandbox.identity.verdicts import first_verdict, issues_of, number_of


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        ("0001", "denied"),
        ("0002", "pending_review"),
        ("0003", "awaiting_documents"),
        ("0004", "approved"),
        ("1001", "approved"),
    ],
)
def test_the_last_four_digits_decide(ending: str, verdict: str) -> None:
    assert first_verdict(f"12345{ending}") == verdict


def test_a_business_is_known_by_its_ein_and_a_person_by_the_tin() -> None:
    fields = {"ein": "12-3456789", "tin": "987-65-4321"}

    assert number_of("business", fields) == "123456789"
    assert number_of("person", fields) == "987654321"


@pytest.mark.parametrize(
    "ein", [None, "", "12345678", "1234567890", "12345678x", 123456789, "١٢٣٤٥٦٧٨٩"]
)
def test_what_is_not_nine_digits_is_no_number(ein: object) -> None:
    assert number_of("business", {"ein": ein}) is None


def test_whoever_is_not_approved_learns_why() -> None:
    assert issues_of("approved") == []
    assert [issue["code"] for issue in issues_of("awaiting_documents")] == ["documents_required"]
