"""Which company has each provider role, and what then has to be set."""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from libs.providers.capabilities import capabilities_of
from libs.providers.companies import Company, Role
from libs.providers.increase.settings import IncreaseSettings
from libs.providers.writing import Capabilities, ProviderWrite
from libs.runtime.process import Misconfigured
from libs.runtime.provider_adapters import open_by_role
from services.onboarding.providers import open_providers as onboarding_providers
from services.onboarding.settings import Settings as OnboardingSettings
from services.payments.models import WireRecord
from services.payments.providers import open_providers as payments_providers
from services.payments.settings import Settings

SETTINGS = {
    **{
        f"BANKSIDE_{service}_DATABASE_URL": "postgresql://login@localhost/bankside"
        for service in ("ONBOARDING", "PAYMENTS")
    },
    "BANKSIDE_PAYMENTS_AMQP_URL": "amqp://payments:x@localhost/",
    **{
        f"BANKSIDE_PAYMENTS_{peer}_KEYS": "k1:" + "A" * 43 + "="
        for peer in ("GATEWAY", "ONBOARDING", "RECONCILIATION")
    },
}
AT_SANDBOX = {
    "BANKSIDE_CORE_URL": "http://localhost/core",
    "BANKSIDE_PAYMENTS_CORE_TOKEN": "token of the sandbox",
}
AT_INCREASE = {
    "BANKSIDE_CORE_PROVIDER": "increase",
    "BANKSIDE_INCREASE_URL": "http://localhost:8091",
    "BANKSIDE_PAYMENTS_INCREASE_KEY": "key of the account",
}

WIRE = WireRecord(
    transaction_id=uuid.uuid4(),
    tenant="t_1",
    customer_id="c_1",
    sending_account_id="account_1",
    external_account_id="external_account_1",
    amount=Decimal(1),
    purpose="Invoice 2047",
    send_age_seconds=None,
    last_sent_at=None,
    last_send_age_seconds=None,
    canceled_by=None,
    created_at=datetime.now(UTC),
    creditor=None,
    history=(),
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


def choose(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def test_the_sandbox_has_each_role_unless_another_company_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_SANDBOX)

    settings = Settings.load()

    assert settings.companies() == {Company.SANDBOX: [Role.CORE]}
    assert [login.url for login in settings.provider_logins()] == ["http://localhost/core"]


def test_only_the_settings_of_the_chosen_company_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_INCREASE)

    settings = Settings.load()

    [login] = settings.provider_logins()
    assert (login.url, login.secret) == ("http://localhost:8091", "key of the account")
    assert list(settings.problems()) == []


@pytest.mark.parametrize(
    ("chosen", "missing"),
    [
        ("sandbox", {"BANKSIDE_PAYMENTS_CORE_URL", "BANKSIDE_PAYMENTS_CORE_TOKEN"}),
        ("increase", {"BANKSIDE_PAYMENTS_INCREASE_URL", "BANKSIDE_PAYMENTS_INCREASE_KEY"}),
    ],
)
def test_what_is_missing_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, chosen: str, missing: set[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_CORE_PROVIDER", chosen)
    monkeypatch.delenv("BANKSIDE_PAYMENTS_DATABASE_URL")

    settings, [sentence] = Settings.examine()

    assert settings is None
    names = sentence.removeprefix("set ").removesuffix(".").split(", ")
    assert set(names) == missing | {"BANKSIDE_PAYMENTS_DATABASE_URL"}


def test_a_company_that_does_not_exist_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, AT_SANDBOX | {"BANKSIDE_CORE_PROVIDER": "acme"})

    settings, [sentence] = Settings.examine()

    assert settings is None
    assert "CORE_PROVIDER (Input should be 'sandbox'" in sentence


@pytest.mark.parametrize(
    ("chosen", "variable"),
    [(AT_SANDBOX, "BANKSIDE_CORE_URL"), (AT_INCREASE, "BANKSIDE_INCREASE_URL")],
)
@pytest.mark.parametrize("url", ["", "bank.example.com/core"])
def test_a_url_that_is_none_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], variable: str, url: str
) -> None:
    choose(monkeypatch, chosen | {variable: url})

    settings, [sentence] = Settings.examine()

    assert settings is None
    assert f"{variable} (Value error, it has to be http://HOST:PORT or https://HOST" in sentence


def test_an_optional_setting_of_a_company_that_is_empty_is_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_INCREASE | {"BANKSIDE_INCREASE_PROGRAM_ID": ""})

    assert IncreaseSettings.of(Settings.load()).increase_program_id is None


def choose_for_onboarding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_ONBOARDING_AMQP_URL", "amqp://onboarding:x@localhost/")
    for name in OnboardingSettings.model_fields:
        if name.endswith("_keys"):
            monkeypatch.setenv(f"BANKSIDE_ONBOARDING_{name.upper()}", "k1:" + "A" * 43 + "=")


def test_a_service_may_have_several_companies(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_for_onboarding(monkeypatch)
    choose(
        monkeypatch,
        {
            "BANKSIDE_CORE_PROVIDER": "increase",
            "BANKSIDE_FINANCIAL_PROVIDER": "increase",
            "BANKSIDE_IDENTITY_URL": "http://localhost/identity",
            "BANKSIDE_ONBOARDING_IDENTITY_TOKEN": "token of the sandbox",
            "BANKSIDE_INCREASE_URL": "http://localhost:8091",
            "BANKSIDE_ONBOARDING_INCREASE_KEY": "key of the account",
        },
    )

    settings = OnboardingSettings.load()

    assert settings.companies() == {
        Company.SANDBOX: [Role.IDENTITY],
        Company.INCREASE: [Role.CORE, Role.FINANCIAL],
    }
    assert {login.url for login in settings.provider_logins()} == {
        "http://localhost/identity",
        "http://localhost:8091",
    }


@pytest.mark.parametrize(
    "company", [one for one in Company if {Role.IDENTITY, Role.CORE} <= {*capabilities_of(one)}]
)
async def test_what_an_operator_sets_of_writes_holds_at_every_company(
    monkeypatch: pytest.MonkeyPatch, company: Company
) -> None:
    choose_for_onboarding(monkeypatch)
    choose(monkeypatch, AT_SANDBOX | {"BANKSIDE_INCREASE_URL": "http://localhost:8091"})
    for role in Role:
        monkeypatch.setenv(f"BANKSIDE_{role.upper()}_PROVIDER", company)
        monkeypatch.setenv(f"BANKSIDE_{role.upper()}_URL", f"http://localhost/{role}")
        monkeypatch.setenv(f"BANKSIDE_ONBOARDING_{role.upper()}_TOKEN", "token of the sandbox")
    for service in ("PAYMENTS", "ONBOARDING"):
        monkeypatch.setenv(f"BANKSIDE_{service}_INCREASE_KEY", "key of the account")
    monkeypatch.setenv("BANKSIDE_PROVIDER_TRANSIT_SECONDS", "7")
    monkeypatch.setenv("BANKSIDE_PAYMENTS_PROVIDER_KEY_HOURS", "1")
    monkeypatch.setenv("BANKSIDE_ONBOARDING_IDENTITY_KEY_HOURS", "2")
    monkeypatch.setenv("BANKSIDE_ONBOARDING_CORE_KEY_HOURS", "3")

    async with AsyncExitStack() as opened:
        payments = await payments_providers(Settings.load(), opened)
        onboarding = await onboarding_providers(OnboardingSettings.load(), opened)
        writes: list[ProviderWrite[Any]] = [
            payments.core.writes.send_wire(WIRE),
            onboarding.identity.writes.cancel_business("an id"),
            onboarding.core.writes.open_account("an id", "a title"),
        ]

    assert [write.capabilities for write in writes] == [
        Capabilities(hours * 3600, longest_transit_seconds=7) for hours in (1, 2, 3)
    ]


async def test_a_company_without_adapters_for_a_service_is_a_sentence_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_SANDBOX)
    settings = Settings.load()

    async with AsyncExitStack() as opened:
        with pytest.raises(Misconfigured, match="PAYMENTS_CORE_PROVIDER to another company"):
            await open_by_role("services.gateway", settings, opened)


def test_production_wants_tls_to_every_company(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, AT_INCREASE | {"BANKSIDE_INCREASE_URL": "http://api.example"})

    _, sentences = Settings.examine(for_production=True)

    assert any(
        sentence.startswith("set BANKSIDE_INCREASE_URL to https://") for sentence in sentences
    )


def test_a_company_whose_package_is_not_installed_is_a_sentence_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_INCREASE)
    monkeypatch.setattr("libs.providers.increase.settings.find_spec", lambda _: None)
    settings = Settings.load()

    with pytest.raises(Misconfigured, match=r"^install bankside\[increase\]"):
        settings.require_usable()

    [sentence] = [one for one in settings.problems() if "install" in one]
    assert "Increase" in sentence


def test_the_settings_of_each_company_are_known_whichever_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose(monkeypatch, AT_SANDBOX)

    assert Settings.variables() >= {
        *AT_SANDBOX,
        *AT_INCREASE,
        "BANKSIDE_PAYMENTS_INCREASE_KEY_FILE",
        "BANKSIDE_PAYMENTS_WIRE_CEILING_DAILY",
    }
