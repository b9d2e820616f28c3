"""What the production profile refuses: all of it at once, a sentence for each reason."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import pytest
from aiohttp import web

from libs.persistence.engine import open_database
from libs.providers.companies import Login
from libs.providers.sandbox.settings import SIMULATOR
from libs.runtime import start_checks
from libs.runtime.settings import ServiceSettings
from services.gateway.settings import Settings as GatewaySettings
from services.onboarding.settings import Settings as OnboardingSettings
from services.payments.settings import Settings as PaymentsSettings
from services.provider_sandbox.callers import MAY
from services.provider_sandbox.settings import Settings as SandboxSettings
from services.webhook_dispatcher.settings import Settings as DispatcherSettings
from tests.support.certificates import Authority
from tests.support.infrastructure import Environment
from tests.support.ports import free_ports

PASSWORD = "6f1c0a5e9b3d47288c21f0e6ad94b7c3"
ALL = (GatewaySettings, OnboardingSettings, PaymentsSettings, DispatcherSettings)


def password() -> str:
    return secrets.token_hex(16)


def key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture(autouse=True)
def environment_of_production(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with which every service but the sandbox starts."""
    settings = {
        "BANKSIDE_PROFILE": "production",
        "BANKSIDE_GATEWAY_TRUSTED_PROXIES": "10.0.0.0/8",
    }
    for service in ALL:
        database = f"postgresql://login:{password()}@db.example/b?sslmode=verify-full"
        settings[f"BANKSIDE_{service.service.upper()}_DATABASE_URL"] = database
        user = f"{service.service}:{password()}"
        settings[f"BANKSIDE_{service.service.upper()}_AMQP_URL"] = f"amqps://{user}@mq.example/"
        for name in service.complete().model_fields:
            own = f"BANKSIDE_{service.service}_{name}".upper()
            if name.endswith("_token"):
                settings[own] = password()
            elif name.endswith("_keys"):
                settings[own] = f"k1:{key()}"
            elif name in {"identity_url", "core_url", "financial_url"}:
                settings[own] = "https://provider.example/v1"
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def told(service: type[ServiceSettings], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the service says as it refuses to start."""
    with pytest.raises(SystemExit) as ended:
        service.load()
    assert ended.value.code == 78
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("service", ALL)
def test_what_is_encrypted_private_and_random_is_taken(service: type[ServiceSettings]) -> None:
    assert service.load().is_production


@pytest.mark.parametrize(
    ("service", "name", "value", "sentence"),
    [
        (PaymentsSettings, "BANKSIDE_CRASH_AT", "payments.intent", "unset BANKSIDE_CRASH_AT"),
        (DispatcherSettings, "BANKSIDE_CALLBACK_ALLOW", "a:*", "unset BANKSIDE_CALLBACK_ALLOW"),
        (GatewaySettings, "BANKSIDE_GATEWAY_TRUSTED_PROXIES", "", "the proxy that terminates TLS"),
        (
            GatewaySettings,
            "BANKSIDE_GATEWAY_DATABASE_URL",
            f"postgresql://login:{PASSWORD}@db.example/b",
            "set BANKSIDE_GATEWAY_DATABASE_URL with ?sslmode=verify-full",
        ),
        (
            GatewaySettings,
            "BANKSIDE_GATEWAY_AMQP_URL",
            f"amqp://gateway:{PASSWORD}@mq.example/",
            "set BANKSIDE_GATEWAY_AMQP_URL to amqps://",
        ),
        (
            PaymentsSettings,
            "BANKSIDE_PAYMENTS_CORE_URL",
            "http://bank.example/core",
            "set BANKSIDE_PAYMENTS_CORE_URL to https://",
        ),
        (
            GatewaySettings,
            "BANKSIDE_GATEWAY_AMQP_URL",
            "amqps://gateway:guest@mq.example/",
            "the password in BANKSIDE_GATEWAY_AMQP_URL to a random secret",
        ),
        (
            PaymentsSettings,
            "BANKSIDE_PAYMENTS_CORE_TOKEN",
            "0123456789abcde",
            "BANKSIDE_PAYMENTS_CORE_TOKEN to a secret of at least 16 characters",
        ),
        (
            GatewaySettings,
            "BANKSIDE_GATEWAY_STORAGE_KEYS",
            f"k1:{base64.b64encode(bytes(32)).decode()}",
            "BANKSIDE_GATEWAY_STORAGE_KEYS to a random secret",
        ),
    ],
)
def test_each_reason_is_a_sentence_that_names_the_setting(
    service: type[ServiceSettings],
    name: str,
    value: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)

    [said] = told(service, capsys)

    assert sentence in said
    monkeypatch.setenv("BANKSIDE_PROFILE", "development")
    assert service.load()


@pytest.mark.parametrize("shared", ["token and password", "rings"])
def test_one_secret_for_two_things_is_refused(
    shared: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = password()
    if shared == "rings":
        names = "BANKSIDE_ONBOARDING_STORAGE_KEYS", "BANKSIDE_ONBOARDING_GATEWAY_KEYS"
        for name in names:
            monkeypatch.setenv(name, f"k1:{base64.b64encode(one.encode()).decode()}")
    else:
        names = "BANKSIDE_ONBOARDING_DATABASE_URL", "BANKSIDE_ONBOARDING_CORE_TOKEN"
        url = f"postgresql://login:{one}@db.example/b?sslmode=require"
        monkeypatch.setenv("BANKSIDE_ONBOARDING_DATABASE_URL", url)
        monkeypatch.setenv("BANKSIDE_ONBOARDING_CORE_TOKEN", one)

    [said] = told(OnboardingSettings, capsys)

    assert all(name in said for name in names)
    assert "that differ" in said
    assert one not in said


def test_an_old_key_behind_the_sealing_one_may_be_in_two_rings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = key()
    for ring in ("STORAGE", "GATEWAY"):
        monkeypatch.setenv(f"BANKSIDE_ONBOARDING_{ring}_KEYS", f"k2:{key()},k1:{old}")

    assert OnboardingSettings.load()


def test_all_reasons_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_CRASH_AT", "gateway.anywhere")
    monkeypatch.setenv("BANKSIDE_GATEWAY_DATABASE_URL", "postgresql://login:short@db.example/b")
    monkeypatch.setenv("BANKSIDE_GATEWAY_AMQP_URL", "amqp://gateway:guest@mq.example/")
    monkeypatch.delenv("BANKSIDE_GATEWAY_TRUSTED_PROXIES")

    said = told(GatewaySettings, capsys)

    assert len(said) == 6
    assert all(line.startswith("gateway: ") for line in said)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "mq-here"])
def test_what_stays_on_this_machine_or_is_excepted_need_not_be_encrypted(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_PLAINTEXT_HOSTS", "db-here, mq-here")
    monkeypatch.setenv("BANKSIDE_GATEWAY_AMQP_URL", f"amqp://gateway:{password()}@{host}/")
    monkeypatch.setenv("BANKSIDE_GATEWAY_DATABASE_URL", f"postgresql://login:{password()}@{host}/b")

    assert GatewaySettings.load()


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("", True),
        ("http://127.0.0.1:4318", True),
        ("http://traces-here:4318", True),
        ("https://collector.example", True),
        ("http://collector.example:4318", False),
    ],
)
def test_traces_go_to_another_host_by_tls(
    url: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_PLAINTEXT_HOSTS", "traces-here")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)

    if is_taken:
        assert GatewaySettings.load().collector == (url or None)
    else:
        (refused,) = told(GatewaySettings, capsys)
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" in refused


def test_a_unix_socket_need_not_be_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "BANKSIDE_GATEWAY_DATABASE_URL", f"postgresql://login:{password()}@/b?host=/run/postgresql"
    )

    assert GatewaySettings.load()


def test_no_exception_is_made_for_a_provider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_PLAINTEXT_HOSTS", "bank")
    monkeypatch.setenv("BANKSIDE_PAYMENTS_CORE_URL", "http://bank:8090/core")

    assert len(told(PaymentsSettings, capsys)) == 1


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://api.increase.com", True),
        ("https://sandbox.increase.com", False),
        ("https://Sandbox.Increase.com:443/v1", False),
    ],
)
def test_a_companys_own_sandbox_is_refused_by_its_host(
    url: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_CORE_PROVIDER", "increase")
    monkeypatch.setenv("BANKSIDE_PAYMENTS_INCREASE_KEY", password())
    monkeypatch.setenv("BANKSIDE_INCREASE_URL", url)

    if is_taken:
        assert PaymentsSettings.load()
    else:
        [said] = told(PaymentsSettings, capsys)
        assert "set BANKSIDE_INCREASE_URL to a provider's URL" in said
        assert "Increase's bank for tests" in said


def test_tls_of_the_gateways_own_needs_no_proxy_but_a_private_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = Authority(tmp_path).identity()
    monkeypatch.delenv("BANKSIDE_GATEWAY_TRUSTED_PROXIES")
    monkeypatch.setenv("BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE", identity.certificate_file)
    monkeypatch.setenv("BANKSIDE_GATEWAY_TLS_KEY_FILE", identity.key_file)
    assert GatewaySettings.load()

    Path(identity.key_file).chmod(0o644)

    [said] = told(GatewaySettings, capsys)
    assert f"BANKSIDE_GATEWAY_TLS_KEY_FILE: {identity.key_file} can be read by other users" in said


def test_the_sandbox_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for caller, api in MAY:
        monkeypatch.setenv(f"BANKSIDE_SANDBOX_{caller}_{api}_TOKEN".upper(), password())
    monkeypatch.setenv("BANKSIDE_SANDBOX_LINK_KEY", password())
    database = f"postgresql://login:{password()}@db.example/b?sslmode=verify-full"
    monkeypatch.setenv("BANKSIDE_SANDBOX_DATABASE_URL", database)

    [said] = told(SandboxSettings, capsys)

    assert "the sandbox simulates a bank" in said


@pytest.mark.parametrize(
    ("ahead", "uncertain", "way"),
    [(2.5, 0.1, "2.5 s ahead of"), (-3.0, 0.1, "3.0 s behind"), (1.9, 0.0, None), (2.5, 0.6, None)],
)
def test_a_clock_that_is_off_by_more_than_two_seconds_is_refused(
    ahead: float, uncertain: float, way: str | None
) -> None:
    said = list(start_checks.clock_that_is_off(ahead, uncertain))

    assert [way in sentence for sentence in said if way] == ([True] if way else [])
    assert bool(said) == bool(way)


async def test_the_clock_is_compared_with_the_databases(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = environment.database_urls["gateway"]
    assert await start_checks.clock_refusals(url, None) == []

    database = open_database(url, "tests")
    try:
        async with database.driver() as driver:
            later = await driver.fetchval("SELECT extract(epoch FROM clock_timestamp() + '60 s')")
    finally:
        await database.close()
    ahead, _ = await start_checks.seconds_ahead(url, None, now=lambda: float(later))

    assert ahead == pytest.approx(60, abs=10)


async def test_a_database_that_is_away_refuses_nothing() -> None:
    [port] = free_ports(1)

    assert await start_checks.clock_refusals(f"postgresql://l:p@127.0.0.1:{port}/b", None) == []


@pytest.mark.parametrize("server", [SIMULATOR.server, "a bank"])
async def test_the_sandbox_is_recognized_where_a_provider_should_be(server: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, headers={"Server": server})

    app = web.Application()
    app.router.add_get("/core", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    [port, nothing] = free_ports(2)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    urls = {"CORE": f"http://127.0.0.1:{port}/core", "NONE": f"http://127.0.0.1:{nothing}"}
    logins = {
        name: Login("core_url", url, "core_token", "", "/", SIMULATOR) for name, url in urls.items()
    }
    try:
        said = await start_checks.provider_refusals(logins, None)
    finally:
        await runner.cleanup()

    assert said == (
        [start_checks.simulator_as_provider("CORE", SIMULATOR)]
        if server == SIMULATOR.server
        else []
    )
