"""Which URLs of servers are taken from the environment; any other one is told at the start, not by each exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from libs.http_urls import is_http_url
from services.console.settings import Settings as ConsoleSettings
from services.gateway.settings import Settings as GatewaySettings
from services.payments.settings import Settings as PaymentsSettings

TAKEN = [
    "https://bank.example.com",
    "https://bank.example.com/core/",
    "http://provider_sandbox:8090/core",
    "http://127.0.0.1:8090",
    "https://[::1]:443/core",
]
MISTAKEN = [
    "",
    "bank.example.com/core",
    "https://",
    "https:///core",
    "https://:443/core",
    "https://bank:44x3/core",
    "https://bank:0/core",
    "https://bank:99999/core",
    "https://login:word@bank/core",
    "https://bank/core?version=1",
    "https://bank/core#",
    "https://bank/core ",
    "https://[bank/core",
    "ftp://bank/core",
    "HTTPS://bank/core",
]
Examine = Callable[[], tuple[Any, list[str]]]


def test_a_url_has_a_scheme_a_host_and_perhaps_a_port_and_a_path() -> None:
    assert [url for url in TAKEN if not is_http_url(url)] == []
    assert [url for url in MISTAKEN if is_http_url(url)] == []


@pytest.mark.parametrize("profile", ["development", "production"])
@pytest.mark.parametrize(
    ("examine", "variable"),
    [
        (PaymentsSettings.examine, "BANKSIDE_CORE_URL"),
        (ConsoleSettings.examine, "BANKSIDE_CONSOLE_OPERATOR_URL"),
        (GatewaySettings.examine, "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ],
)
def test_a_mistaken_url_is_a_problem_of_the_settings_that_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch, examine: Examine, variable: str, profile: str
) -> None:
    monkeypatch.setenv("BANKSIDE_PROFILE", profile)
    monkeypatch.setenv(variable, "https://bank:44x3/core")

    settings, [problem] = examine()

    assert settings is None
    assert f"{variable} (Value error, it has to be http://HOST:PORT or https://HOST" in problem
    assert "44x3" not in problem
