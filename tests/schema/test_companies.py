"""Only a company's own packages name it, and know its statuses, codes, event names and wire formats.

The words are ones that mean nothing but the company's thing: names that our interface or tables share with it cannot be
told apart. Which modules may import a company's packages is a contract of import-linter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from libs.providers.companies import Company

ROOT = Path(__file__).parents[2]
LISTED_IN = "libs/providers/companies.py"
"""The one place that lists the companies; nothing but their names."""

WORDS: Mapping[Company, tuple[str, ...]] = {
    Company.SANDBOX: (
        r"sandbox(?!\.increase\.com)",
        # how its errors, stored answers and events are called
        "['\"]unknown_key",
        r"/operations/",
        r"customer\.status_changed",
        r"/events/newest",
        "external-account[s]?/",
        "deposit-loads",
        "get_operation",
        "/customers/",
        "accept_then_drop",
    ),
    Company.INCREASE: (
        "increase(?![sd])",
        "AsyncIncrease",
        # resources and operations
        "account_transfer",
        "associated_object",
        "beneficial_owner_",
        "card_refund",
        "check_deposit",
        "fednow",
        "inbound_(ach|wire|check)",
        "statement_descriptor",
        "swift_transfer",
        "ach_transfer",
        "wire_transfer",
        "entity_beneficial_owner",
        "file_link",
        "intrafi",
        "account_statement",
        "simulations?/",
        # statuses and categories
        "pending_creating",
        "pending_reviewing",
        "requires_attention",
        "interest_payment_source",
        r"entity\.(created|updated)",
        r"wire_transfer\.(created|updated)",
        # error types
        "idempotency_key_already_used_error",
        "invalid_parameters_error",
        "malformed_request_error",
        "us_employer_identification_number",
        "object_not_found_error",
        "invalid_operation_error",
        "rate_limited_error",
    ),
}
MAY_NAME_ALL = {LISTED_IN}


def packages_of(company: Company) -> list[Path]:
    found = [ROOT / "libs/providers" / company]
    found += (ROOT / "services").glob(f"*/adapters/{company}")
    if company is Company.SANDBOX:
        found.append(ROOT / "services/provider_sandbox")
    return found


def modules_outside(company: Company) -> Iterator[Path]:
    own = packages_of(company)
    for top in ("libs", "services"):
        for module in sorted((ROOT / top).rglob("*.py")):
            if not any(module.is_relative_to(package) for package in own):
                yield module


def mentions(text: str, word: str) -> list[str]:
    """The lines with the word, as a word of its own or as a part of a name."""
    pattern = re.compile(rf"(?<![a-z]){word}", re.IGNORECASE)
    return [line.strip() for line in text.splitlines() if pattern.search(line)]


@pytest.mark.parametrize("company", Company)
def test_a_company_and_its_words_are_known_to_its_own_packages_only(company: Company) -> None:
    found = [
        f"{module.relative_to(ROOT)}: {line}"
        for module in modules_outside(company)
        if str(module.relative_to(ROOT)) not in MAY_NAME_ALL
        for word in WORDS[company]
        for line in mentions(module.read_text(), word)
    ]

    assert found == []


def test_the_list_of_companies_has_their_names_and_none_of_their_words() -> None:
    text = (ROOT / LISTED_IN).read_text()

    for company, (_, *words) in WORDS.items():
        assert [line for word in words for line in mentions(text, word)] == [], company


@pytest.mark.parametrize("company", Company)
def test_each_company_says_what_it_needs_and_what_it_offers(company: Company) -> None:
    parts = {"settings.py", "capabilities.py"}

    assert parts <= {file.name for file in (ROOT / "libs/providers" / company).iterdir()}
