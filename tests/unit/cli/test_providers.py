"""`bankside provider show`: the companies that the environment chooses, and what they offer."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

import pytest

from libs.cli import providers
from libs.cli.providers import described
from libs.client.errors import OperatorError
from libs.providers.capabilities import capabilities_of
from libs.providers.companies import Company, Role
from tests.unit.cli.typed import bankside

CHOICES = [f"BANKSIDE_{role.upper()}_PROVIDER" for role in Role]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOICES:
        monkeypatch.delenv(name, raising=False)


async def test_each_role_is_shown_with_its_company_and_the_services_that_call_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANKSIDE_CORE_PROVIDER", "increase")
    monkeypatch.setenv("BANKSIDE_FINANCIAL_PROVIDER", "increase")
    monkeypatch.setenv("BANKSIDE_RECONCILIATION_CORE_PROVIDER", "sandbox")

    status, out, _ = await bankside("provider", "show", "--json")

    assert status == 0
    roles = json.loads(out)["roles"]
    assert [(one["role"], one["company"], one["services"]) for one in roles] == [
        ("identity", "sandbox", ["onboarding", "reconciliation"]),
        ("core", "increase", ["onboarding", "payments"]),
        ("core", "sandbox", ["reconciliation"]),
        ("financial", "increase", ["ledger_read", "onboarding", "reconciliation"]),
    ]
    assert roles[0]["writes"]["keys_remembered_seconds"] is None
    assert {
        "what": "settlement calculations and reserve accounts",
        "instead": "`data` is null",
    } in (roles[3]["lacks"])


async def test_people_are_shown_what_a_company_promises_and_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANKSIDE_CORE_PROVIDER", "increase")

    status, out, _ = await bankside("provider", "show", "core")

    assert status == 0
    assert out.startswith("core  increase  (of onboarding, payments, reconciliation)")
    assert "idempotency keys: remembered for 24 h" in out
    assert "refusals: not kept" in out
    assert "lacks a primary external account" in out


async def test_a_role_that_does_not_exist_is_one_sentence() -> None:
    status, _, error = await bankside("provider", "show", "cards")

    assert (status, "identity, core, financial" in error) == (2, True)


@pytest.mark.parametrize("company", Company)
def test_every_company_says_what_it_offers_in_its_roles(company: Company) -> None:
    assert {*capabilities_of(company)} - set(Role) == set()
    assert capabilities_of(company)


def test_a_company_without_the_role_that_it_is_chosen_for_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = {Role.CORE: capabilities_of(Company.INCREASE)[Role.CORE]}
    monkeypatch.setattr(providers, "capabilities_of", lambda _: offers)

    with pytest.raises(OperatorError, match="sandbox does not have the role identity: set "):
        providers.show("identity")


def test_the_readmes_table_says_what_the_companies_offer() -> None:
    """A cell names every description that the company's roles have, or the one that they share."""
    lines = (Path(__file__).parents[3] / "README.md").read_text().splitlines()
    begins = next(at for at, line in enumerate(lines) if line.startswith("| | `sandbox` |"))
    rows = takewhile(lambda line: line.startswith("|"), lines[begins:])
    table = {name.strip(): cells for name, *cells in (row.strip("|").split("|") for row in rows)}

    companies = [Company(cell.strip(" `")) for cell in table[""]]
    assert companies == list(Company)
    for column, company in enumerate(companies):
        offers = capabilities_of(company)
        assert table["roles"][column].strip().split(", ") == [role.value for role in offers]
        told = {pair for offer in offers.values() for pair in described(offer)}
        for name, text in told:
            assert text.removeprefix("remembered for ") in table[name][column], (company, name)
        lacks = table["what it lacks"][column].strip()
        whats = {lack.what for offer in offers.values() for lack in offer.lacks}
        assert lacks == "nothing" if not whats else set(lacks.split("; ")) <= whats
