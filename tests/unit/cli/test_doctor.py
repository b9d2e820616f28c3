"""`bankside doctor`: a finding for what would keep a service from working, and nothing where nothing is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from libs.cli import examinations
from libs.providers.sandbox.settings import SIMULATOR
from services.gateway.settings import Settings as GatewaySettings
from tests.support.certificates import Authority
from tests.support.command_line import run_bankside
from tests.support.infrastructure import Environment
from tests.support.ports import free_ports
from tests.support.stack import Stack


@pytest.fixture
def settings(environment: Environment, tmp_path: Path) -> Mapping[str, str]:
    """All settings of a stack that does not run, on a database and a broker that do."""
    return Stack(environment, tmp_path).env


async def findings(
    settings: Mapping[str, str], *arguments: str, status: int = 1
) -> list[tuple[str, str, str]]:
    others = {name: value for name, value in os.environ.items() if "BANKSIDE" not in name}
    done = await run_bankside(("doctor", *arguments, "--json"), {**others, **settings})
    assert done.status == status, done.err
    listed: list[dict[str, Any]] = json.loads(done.out)["findings"]
    return [(item["service"], item["subject"], item["what_to_do"]) for item in listed]


async def test_nothing_is_found_where_nothing_is_wrong(settings: Mapping[str, str]) -> None:
    assert await findings(settings, "gateway", "webhook_dispatcher", status=0) == []


async def test_without_names_all_services_are_looked_at_whose_settings_are_here(
    settings: Mapping[str, str],
) -> None:
    found = await findings(settings)

    assert {(service, subject) for service, subject, _ in found} == {
        ("ledger_read", "providers"),
        ("onboarding", "providers"),
        ("payments", "providers"),
        ("reconciliation", "providers"),
    }  # the sandbox does not run
    assert all("it does not answer" in text for _, _, text in found)


@pytest.mark.parametrize(
    ("variable", "status", "said"),
    [
        ("BANKSIDE_CONSOLE_OPERATOR_SECRET", 1, "console  settings"),
        ("BANKSIDE_CONSOLE_OPERATOR_SECRET_FILE", 1, "console  settings"),
        ("BANKSIDE_OPERATOR_SECRET", 2, "No service's settings are here"),
        ("BANKSIDE_OPERATOR_SECRET_FILE", 2, "No service's settings are here"),
    ],
)
async def test_the_key_of_an_operator_is_not_taken_for_the_consoles(
    variable: str, status: int, said: str
) -> None:
    others = {name: value for name, value in os.environ.items() if "BANKSIDE" not in name}

    done = await run_bankside(("doctor",), {**others, variable: "/nowhere"})

    assert done.status == status
    assert said in done.out + done.err


async def test_what_production_refuses_is_said_before(settings: Mapping[str, str]) -> None:
    found = await findings(
        {**settings, "BANKSIDE_CRASH_AT": "gateway.anywhere"}, "gateway", "--production"
    )

    assert [(service, subject) for service, subject, _ in found] == [("gateway", "settings")] * 2
    assert "unset BANKSIDE_CRASH_AT" in found[0][2]
    assert "BANKSIDE_GATEWAY_TRUSTED_PROXIES" in found[1][2]


async def test_a_certificate_that_is_about_to_expire_is_found(
    settings: Mapping[str, str], tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    late, early = authority.identity("late", days=13), authority.identity("early", days=15)
    of_gateway = {
        "BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE": late.certificate_file,
        "BANKSIDE_GATEWAY_TLS_KEY_FILE": late.key_file,
    }
    of_console = {
        "BANKSIDE_CONSOLE_TLS_CERTIFICATE_FILE": early.certificate_file,
        "BANKSIDE_CONSOLE_TLS_KEY_FILE": early.key_file,
    }

    found = await findings({**settings, **of_gateway, **of_console}, "gateway", "console")

    assert [(service, subject) for service, subject, _ in found] == [("gateway", "certificate")]
    assert f"renew the certificate in {late.certificate_file}" in found[0][2]


async def test_a_name_of_a_service_that_sets_nothing_is_told_with_the_nearest_setting(
    settings: Mapping[str, str],
) -> None:
    mistyped = {
        "BANKSIDE_GATEWAY_TRUSTED_PROXYS": "10.0.0.0/8",
        "BANKSIDE_GATEWAY_TLS_KEY_FILE_FILE": "/nowhere",
        "BANKSIDE_GATEWAY_OWNER_DATABASE_URL": "postgresql://owner@db.example/b",
    }

    found = await findings({**settings, **mistyped}, "gateway")

    said = "unset {}: no setting has this name; the nearest is {}."
    assert [text for _, _, text in found] == [
        said.format("BANKSIDE_GATEWAY_TLS_KEY_FILE_FILE", "BANKSIDE_GATEWAY_TLS_KEY_FILE"),
        said.format("BANKSIDE_GATEWAY_TRUSTED_PROXYS", "BANKSIDE_GATEWAY_TRUSTED_PROXIES"),
    ]


async def test_a_secret_of_two_services_is_found(settings: Mapping[str, str]) -> None:
    names = "BANKSIDE_GATEWAY_STORAGE_KEYS", "BANKSIDE_WEBHOOK_DISPATCHER_STORAGE_KEYS"
    both = {**settings, names[1]: settings[names[0]]}
    services = ("gateway", "webhook_dispatcher")

    found = await findings(both, *services, "--production")

    told = [text for _, _, text in found if "that differ" in text]
    assert [all(name in text for name in names) for text in told] == [True]
    assert await findings(both, *services, status=0) == []


async def test_settings_that_cannot_be_used_are_named_with_the_rest(
    settings: Mapping[str, str],
) -> None:
    without_port = {**settings, "BANKSIDE_GATEWAY_PORT": "none"}
    [(_, subject, text)] = await findings(without_port, "gateway")
    assert (subject, "BANKSIDE_GATEWAY_PORT" in text) == ("settings", True)

    bad_ring = {**settings, "BANKSIDE_GATEWAY_STORAGE_KEYS": "none"}
    [(_, subject, text)] = await findings(bad_ring, "gateway")
    assert (subject, "BANKSIDE_GATEWAY_STORAGE_KEYS" in text) == ("settings", True)


async def test_a_database_without_tables_wants_migrations(
    settings: Mapping[str, str], empty_environment: Environment
) -> None:
    url = empty_environment.database_urls["gateway"]

    [(_, subject, text)] = await findings(
        {**settings, "BANKSIDE_GATEWAY_DATABASE_URL": url}, "gateway"
    )

    assert subject == "database"
    assert "run the migrations" in text


async def test_an_owner_is_no_login_for_a_service(
    settings: Mapping[str, str], environment: Environment
) -> None:
    url = environment.database_urls["gateway_owner"]

    [(_, subject, text)] = await findings(
        {**settings, "BANKSIDE_GATEWAY_DATABASE_URL": url}, "gateway"
    )

    assert subject == "database"
    assert "not an owner's" in text


async def test_logins_that_are_refused_and_servers_that_are_away_are_told_apart(
    settings: Mapping[str, str],
) -> None:
    names = "BANKSIDE_GATEWAY_DATABASE_URL", "BANKSIDE_GATEWAY_AMQP_URL"
    refused = {name: settings[name].replace("@", "0@") for name in names}
    [port] = free_ports(1)
    away = {name: f"{settings[name].partition('@')[0]}@127.0.0.1:{port}/x" for name in names}

    told_refused = await findings({**settings, **refused}, "gateway")
    told_away = await findings({**settings, **away}, "gateway")

    assert [subject for _, subject, _ in told_refused] == ["database", "broker"]
    assert all("refuses the" in text for _, _, text in told_refused)
    assert [subject for _, subject, _ in told_away] == ["database", "broker"]
    assert all("it does not answer" in text for _, _, text in told_away)


async def test_a_database_and_a_virtual_host_that_are_not_there_are_told(
    settings: Mapping[str, str],
) -> None:
    names = "BANKSIDE_GATEWAY_DATABASE_URL", "BANKSIDE_GATEWAY_AMQP_URL"
    missing = {name: f"{settings[name].rpartition('/')[0]}/not-there" for name in names}

    found = await findings({**settings, **missing}, "gateway")

    assert [subject for _, subject, _ in found] == ["database", "broker"]
    assert "set BANKSIDE_GATEWAY_DATABASE_URL to a database that exists" in found[0][2]
    assert "does not open the virtual host in BANKSIDE_GATEWAY_AMQP_URL" in found[1][2]


async def test_a_parameter_that_the_database_driver_does_not_take_is_a_mistake_of_the_settings(
    settings: Mapping[str, str],
) -> None:
    url = settings["BANKSIDE_GATEWAY_DATABASE_URL"]

    [(_, subject, text)] = await findings(
        {**settings, "BANKSIDE_GATEWAY_DATABASE_URL": f"{url}?channel_binding=require"}, "gateway"
    )

    assert (subject, "BANKSIDE_GATEWAY_DATABASE_URL" in text) == ("settings", True)


async def test_an_examination_that_fails_is_a_finding_and_the_others_go_on(
    settings: Mapping[str, str],
) -> None:
    label = "canary" * 11  # longer than the 63 characters that a name of the DNS may have
    url = f"postgresql://payments@{label}.example/bankside"

    found = await findings({**settings, "BANKSIDE_PAYMENTS_DATABASE_URL": url}, "payments")

    assert [subject for _, subject, _ in found] == ["database", "providers"]
    assert "could not be looked at to its end (Unicode" in found[0][2]
    assert "canary" not in found[0][2]


async def test_a_user_of_the_broker_with_more_rights_than_it_needs_is_found(
    environment: Environment,
) -> None:
    known: dict[str, Any] = {"amqp_url": SecretStr(environment.amqp_url)}
    administrator = GatewaySettings.model_construct(**known)

    found = [sentence async for sentence in examinations.broker(administrator)]

    assert len(found) == 2
    assert "may declare any queue" in found[0]
    assert "may publish to any queue" in found[1]


@asynccontextmanager
async def provider(status: int, server: str) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Server": server})

    app = web.Application()
    app.router.add_get("/core/operations/{key}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    [port] = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/core"
    finally:
        await runner.cleanup()


async def test_a_provider_that_does_not_know_the_token_and_one_that_is_the_sandbox_are_found(
    settings: Mapping[str, str],
) -> None:
    async with provider(401, "a bank") as url:
        [(_, subject, unknown)] = await findings({**settings, "BANKSIDE_CORE_URL": url}, "payments")
    async with provider(404, SIMULATOR.server or "") as url:
        with_sandbox = {**settings, "BANKSIDE_CORE_URL": url}
        [(_, _, refused)] = await findings(with_sandbox, "payments", "--production")
        in_development = await findings(with_sandbox, "payments", status=0)

    assert (subject, "does not know" in unknown) == ("providers", True)
    assert "the sandbox, which simulates a bank" in refused
    assert in_development == []


async def test_people_get_a_line_for_each_finding(settings: Mapping[str, str]) -> None:
    others = {name: value for name, value in os.environ.items() if "BANKSIDE" not in name}

    done = await run_bankside(("doctor", "payments", "ledger_read"), {**others, **settings})
    unknown = await run_bankside(("doctor", "nothing"), {**others, **settings})

    assert done.status == 1
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["payments", "providers"],
        ["ledger_read", "providers"],
    ]
    assert (unknown.status, "There is no service 'nothing'" in unknown.err) == (2, True)
