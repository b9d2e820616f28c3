"""Whom the identity provider believes: decided by the last four digits of the EIN or TIN, so that tests can choose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Kind = Literal["business", "person"]
Status = Literal["approved", "pending_review", "awaiting_documents", "denied", "canceled"]
Decision = Literal["approved", "pending_review", "awaiting_documents", "denied"]

MAGIC_ENDINGS: dict[str, Decision] = {
    "0001": "denied",
    "0002": "pending_review",
    "0003": "awaiting_documents",
}
UNDECIDED = ("pending_review", "awaiting_documents")

ISSUES: dict[Status, tuple[str, str]] = {
    "pending_review": ("manual_review", "A person looks at the application."),
    "awaiting_documents": ("documents_required", "Documents that prove the identity are needed."),
    "denied": ("identity_denied", "The identity could not be verified."),
    "canceled": ("canceled", "The application was canceled."),
}


def number_field(kind: Kind) -> Literal["ein", "tin"]:
    """The field that holds the number by which a customer of this kind is known."""
    return "ein" if kind == "business" else "tin"


def number_of(kind: Kind, fields: Mapping[str, object]) -> str | None:
    """The nine digits of the EIN or TIN; None when there are none."""
    value = fields.get(number_field(kind))
    digits = value.replace("-", "") if isinstance(value, str) else ""
    return digits if re.fullmatch("[0-9]{9}", digits) else None


def first_verdict(number: str) -> Decision:
    return MAGIC_ENDINGS.get(number[-4:], "approved")


def issues_of(status: Status) -> list[dict[str, str]]:
    """Why a record is not approved."""
    issue = ISSUES.get(status)
    return [{"code": issue[0], "detail": issue[1]}] if issue else []
