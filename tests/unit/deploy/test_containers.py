"""docker-compose.yml and the secrets that make-env writes for it: each container has what it needs and nothing else."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from yarl import URL

from deploy.local.ports import LOOPBACK
from deploy.local.services import FINDING, KEEPING, OWNERS, PROVIDER_APIS, ROLES, SHARING, STORING
from libs.persistence.addressing import connect_arguments
from libs.persistence.sealing import Keyring, LookupKeys
from libs.runtime.production import password_of
from libs.secret_sources import read_secret
from services.payments.settings import Settings as PaymentsSettings
from tests.support.pace import pace
from tests.support.with_each import with_each

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
OBSERVERS = {name: row for name, row in CONTAINERS.items() if "profiles" in row}
OURS = {
    name: row
    for name, row in CONTAINERS.items()
    if name not in {"postgres", "rabbitmq", *OBSERVERS}
}
MOUNTED = {
    "/".join(Path(volume.partition(":")[0]).parts[:2])
    for row in CONTAINERS.values()
    for volume in row.get("volumes", ())
    if volume.startswith("./deploy/")
}
"""The folders of which containers get files."""
NOWHERE = "http://127.0.0.1:9"
TOKEN = "BANKSIDE_PAYMENTS_CORE_TOKEN"
PASSWORD = "BANKSIDE_PAYMENTS_DATABASE_PASSWORD"
GIVEN_BY_COMPANIES = {f"BANKSIDE_{ROLES[service]}_INCREASE_KEY" for service in PROVIDER_APIS}
"""Keys that are there once an operator has put them there."""


def new_checkout(folder: Path) -> Path:
    script = folder / "deploy" / "docker" / "make-env"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "docker" / "make-env", script)
    for mounted in MOUNTED:
        shutil.copytree(ROOT / mounted, folder / mounted)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return new_checkout(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the secrets of one run, a second of processor time; tests read them only."""
    folder = new_checkout(tmp_path_factory.mktemp("made"))
    make_env(folder)
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """The same, for a test that changes them."""
    return shutil.copytree(made, tmp_path / "copied")


def make_env(checkout: Path, **addresses: str) -> str:
    command = ["/bin/sh", str(checkout / "deploy" / "docker" / "make-env")]
    environment = {**os.environ, **addresses}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60 * pace(), env=environment
    ).stdout


def path_with(folder: Path, **programs: str) -> str:
    """A PATH on which these programs, each a line of shell, take the place of the machine's."""
    (folder / "bin").mkdir()
    for name, line in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {path: path.stat() for path in folder.rglob("*")}
    return {path: (one.st_mode, one.st_mtime_ns) for path, one in found.items()}


def secrets(checkout: Path, folder: str = "values") -> dict[str, str]:
    """The secrets of a folder, and with `values` all there are."""
    return {
        path.name: path.read_text().strip() for path in (checkout / ".secrets" / folder).iterdir()
    }


def named_files(container: str) -> set[str]:
    """The secrets that the settings of a container of ours name."""
    settings = CONTAINERS[container]["environment"].items()
    return {
        str(value).removeprefix("/run/secrets/")
        for name, value in settings
        if name.endswith("_FILE") and str(value).startswith("/run/secrets/")
    }


def test_a_container_is_given_the_secrets_that_it_names_and_no_others(made: Path) -> None:
    given = {path.name for path in (made / ".secrets").iterdir()} - {"values"}
    assert given == CONTAINERS.keys() - OBSERVERS.keys()
    for name in OURS:
        assert f"./.secrets/{name}:/run/secrets:ro" in CONTAINERS[name]["volumes"]
        assert secrets(made, name).keys() == named_files(name) - GIVEN_BY_COMPANIES, name
        assert not re.search(
            r"\$\{[A-Z_]*(PASSWORD|TOKEN|KEY)", str(CONTAINERS[name]["environment"])
        )
    schemas = (ROOT / "deploy" / "postgres" / "schemas.sql").read_text()
    assert secrets(made, "postgres").keys() == {
        "POSTGRES_PASSWORD",
        *re.findall(r"\\getenv \w+ (\w+)", schemas),
    }
    definitions = (ROOT / "deploy" / "rabbitmq" / "definitions.json").read_text()
    assert secrets(made, "rabbitmq").keys() == set(re.findall(r"\$\{(\w+)\}", definitions))


def test_a_service_is_given_its_own_login_and_tokens(made: Path) -> None:
    values = secrets(made)
    assert len(set(values.values())) == len(values)
    assert min(map(len, values.values())) >= 32
    for role, prefix in {**ROLES, **OWNERS}.items():
        url = secrets(made, "migrate" if role in OWNERS else role)[
            f"BANKSIDE_{prefix}_DATABASE_URL"
        ]
        password = values[f"BANKSIDE_{prefix}_DATABASE_PASSWORD"]
        assert url == f"postgresql://{role}:{password}@postgres:5432/bankside"
    for service, apis in PROVIDER_APIS.items():
        for api in apis:
            name = f"BANKSIDE_{ROLES[service]}_{api.upper()}_TOKEN"
            assert secrets(made, service)[name] == values[name]
            assert secrets(made, "provider_sandbox")[name] == values[name]


def test_limits_of_wires_reach_payments_where_an_operator_sets_them() -> None:
    limits = {
        f"BANKSIDE_PAYMENTS_{name.upper()}"
        for name in PaymentsSettings.model_fields
        if name.startswith(("wire_ceiling_", "wire_default_"))
    }
    environment = CONTAINERS["payments"]["environment"]

    passed = {name for name in environment if name.startswith("BANKSIDE_PAYMENTS_WIRE_")}

    assert len(limits) > 1
    assert passed == limits
    assert {environment[name] for name in passed} == {None}, "compose takes them from .env"


def test_the_gateway_knows_the_providers_of_the_services_and_no_secret_of_theirs() -> None:
    providers = COMPOSE["x-providers"]
    given = CONTAINERS["gateway"]["environment"]

    assert {"BANKSIDE_CORE_PROVIDER", "BANKSIDE_CORE_URL"} <= providers.keys()
    for name in ("gateway", *PROVIDER_APIS):
        assert providers.items() <= CONTAINERS[name]["environment"].items(), name
    assert not [name for name in given if "TOKEN" in name or "INCREASE_KEY" in name]


def test_servers_elsewhere_are_named_by_their_addresses(checkout: Path) -> None:
    make_env(
        checkout,
        DATABASE="db.internal:5433/bankside?sslmode=verify-full",
        BROKER="amqps://mq.internal:5671/%2F",
    )

    urls = [value for folder in OURS for value in secrets(checkout, folder).values()]
    databases = [url for url in urls if url.startswith("postgresql:")]
    brokers = [url for url in urls if url.startswith("amqp")]
    assert databases
    assert all(url.endswith("@db.internal:5433/bankside?sslmode=verify-full") for url in databases)
    assert brokers
    assert all(re.fullmatch(r"amqps://\w+:\w+@mq.internal:5671/%2F", url) for url in brokers)


@pytest.mark.parametrize("given", ["a/b#c?d@e:f%41 g+h&i=j", "é~.-_\\$(id)`'\"*"])
def test_a_password_that_an_operator_gave_means_the_same_in_a_url(copied: Path, given: str) -> None:
    names = "BANKSIDE_PAYMENTS_DATABASE", "BANKSIDE_PAYMENTS_AMQP"
    for name in names:
        (copied / ".secrets" / "values" / f"{name}_PASSWORD").write_text(f"{given}\n")

    make_env(copied)

    service = secrets(copied, "payments")
    database, broker = (service[f"{name}_URL"] for name in names)
    assert connect_arguments(database) == {
        "host": "postgres",
        "port": 5432,
        "user": "payments",
        "password": given,
        "database": "bankside",
        "ssl": False,
    }
    assert (URL(broker).password, URL(broker).host) == (given, "rabbitmq")
    assert [password_of(url) for url in (database, broker)] == [given, given]
    servers = secrets(copied, "postgres") | secrets(copied, "rabbitmq")
    assert [servers[f"{name}_PASSWORD"] for name in names] == [given, given]


def test_the_console_has_the_key_that_the_gateway_registers(made: Path) -> None:
    console, gateway = secrets(made, "console"), secrets(made, "gateway")
    assert len(console) == 2
    for what in ("KEY", "SECRET"):
        name = f"BANKSIDE_CONSOLE_OPERATOR_{what}"
        assert console[name] == gateway[f"BANKSIDE_GATEWAY_CONSOLE_{what}"]
    assert re.fullmatch(r"sub_[A-Za-z0-9]{22,}", console["BANKSIDE_CONSOLE_OPERATOR_KEY"])


def test_the_secrets_are_private_and_what_they_name_can_be_read(made: Path) -> None:
    folder = made / ".secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    [user] = re.findall(r"(?m)^BANKSIDE_USER=(\d+):\d+$", (made / ".env").read_text())
    for name in OURS:
        for path in (folder / name).iterdir():
            assert path.stat().st_mode & 0o777 == 0o400
            assert path.stat().st_uid == int(user)
    token = folder / "payments" / TOKEN
    assert read_secret(TOKEN, {f"{TOKEN}_FILE": str(token)}) == secrets(made)[TOKEN]


def test_what_is_mounted_can_be_read_also_where_it_was_checked_out_for_its_owner_alone(
    copied: Path,
) -> None:
    mounted = [
        path
        for folder in MOUNTED
        for path in (copied / folder, *(copied / folder).rglob("*"))
        if "__pycache__" not in path.parts
    ]
    for path in mounted:
        path.chmod(0o700 if path.is_dir() else 0o600)

    said, said_again = make_env(copied), make_env(copied)

    assert {"deploy/postgres", "deploy/rabbitmq", "deploy/observability"} == MOUNTED
    assert {path.stat().st_mode & 0o777 for path in mounted if path.is_dir()} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in mounted if path.is_file()} == {0o644}
    assert "Made readable for the users of the containers" in said
    assert "Made readable" not in said_again


def test_folders_and_secrets_that_others_could_read_are_made_private(copied: Path) -> None:
    folder = copied / ".secrets"
    values = folder / "values"
    for path in (folder, values):
        path.chmod(0o755)
    for path in values.iterdir():
        path.chmod(0o644)

    make_env(copied)

    assert {path.stat().st_mode & 0o777 for path in (folder, values)} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in values.iterdir()} == {0o600}


def test_another_run_changes_what_is_missing_passes_on_what_a_company_gave_and_names_the_unknown(
    copied: Path,
) -> None:
    values, before = copied / ".secrets" / "values", secrets(copied)
    settings = (copied / ".env").read_text()
    (values / TOKEN).unlink()
    for name in GIVEN_BY_COMPANIES:
        (values / name).write_text(f"given as {name}\n")
    # Of a ring of two services the file has the name of the one end: this is the other.
    unknown = values / "BANKSIDE_ONBOARDING_GATEWAY_KEYS"
    unknown.write_text("k1:…\n")

    said, after = make_env(copied), secrets(copied)
    unknown.unlink()
    said_without = make_env(copied)

    assert f"Made in .secrets: {TOKEN}." in said
    assert {name for name in before if before[name] != after[name]} == {TOKEN}
    assert secrets(copied, "payments")[TOKEN] == after[TOKEN]
    assert (copied / ".env").read_text() == settings
    assert "Nothing was missing" in said_without

    assert said.rstrip().endswith(": BANKSIDE_ONBOARDING_GATEWAY_KEYS.")
    assert "No container gets" in said
    assert "No container gets" not in said_without

    for service in OURS:
        name = f"BANKSIDE_{service}_INCREASE_KEY".upper()
        expected = {name: f"given as {name}"} if service in PROVIDER_APIS else {}
        given = {n: v for n, v in secrets(copied, service).items() if n in GIVEN_BY_COMPANIES}
        assert given == expected, service
        assert given.keys() <= named_files(service)


def test_secrets_of_an_earlier_release_are_taken_from_its_settings(checkout: Path) -> None:
    # Its last line has no line break.
    (checkout / ".env").write_text(
        f"BANKSIDE_GATEWAY_PORT=8181\n{PASSWORD}='known to the database'"
    )

    said = make_env(checkout)

    assert secrets(checkout)[PASSWORD] == "known to the database"
    assert f"Taken from .env, where they can be removed now: {PASSWORD}." in said
    kept, moved, user = (checkout / ".env").read_text().splitlines()
    assert (kept, moved) == ("BANKSIDE_GATEWAY_PORT=8181", f"{PASSWORD}='known to the database'")
    assert user.startswith("BANKSIDE_USER=")


def test_root_keeps_the_owner_whom_an_ordinary_user_has_made(copied: Path) -> None:
    (copied / ".env").write_text("BANKSIDE_USER=1234:1235 # made by deploy\n")
    owner = (copied / ".secrets").stat()

    make_env(copied, PATH=path_with(copied, id="echo 0", chown='echo "$@" >>chowned'))

    chowned = {
        container.removeprefix(".secrets/"): given
        for _, given, *containers in map(str.split, (copied / "chowned").read_text().splitlines())
        for container in containers
    }
    theirs = f"{owner.st_uid}:{owner.st_gid}"
    assert chowned == dict.fromkeys(OURS, "1234:1235") | dict.fromkeys(
        ("values", "postgres", "rabbitmq"), theirs
    )
    assert (copied / ".env").read_text() == "BANKSIDE_USER=1234:1235 # made by deploy\n"


def test_another_user_than_the_containers_is_told_what_to_do_and_changes_nothing(
    copied: Path,
) -> None:
    (copied / ".env").write_text("BANKSIDE_USER=10001:10001\n")
    (copied / "deploy" / "postgres" / "start").chmod(0o700)
    path = path_with(copied, id="echo 1234")
    before = state(copied)

    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_env(copied, PATH=path)

    assert state(copied) == before
    assert refused.value.stdout == ""
    assert refused.value.stderr == (
        "make-env: .env has BANKSIDE_USER=10001:10001, and you are 1234: run make-env as that user or as root,"
        " or take that line out if all of .secrets is yours.\n"
    )


def test_secrets_without_the_settings_that_belong_to_them_are_refused(copied: Path) -> None:
    (copied / ".env").unlink()
    before = state(copied)

    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_env(copied)

    assert state(copied) == before
    assert refused.value.stderr == (
        "make-env: there are secrets in .secrets/values, and no .env: the profile, the providers and the ceilings of"
        " wires were in it. Put it back, or, if it had none of these, make an empty one: touch .env\n"
    )


def test_the_one_ring_of_an_earlier_release_is_put_behind_the_new_keys(checkout: Path) -> None:
    key = base64.b64encode(bytes(32)).decode()
    (checkout / ".env").write_text(f"BANKSIDE_SEALING_KEYS=k1:{key}\nBANKSIDE_LOOKUP_KEY={key}\n")

    make_env(checkout)

    values = secrets(checkout)
    lookups = [ring for name, ring in values.items() if name.endswith("_LOOKUP_KEYS")]
    rings = [
        ring for name, ring in values.items() if name.endswith("_KEYS") and ring not in lookups
    ]
    sealed = Keyring(f"k1:{key}").seal("text", "row#field")
    opening = [ring for ring in rings if f"k1:{key}" in ring]
    assert {Keyring(ring).open(sealed, "row#field") for ring in opening} == {"text"}
    kept = {"_".join(pair.split("-")).upper() for pair in KEEPING}
    stored = {f"{service}_STORAGE".upper() for service in STORING}
    given = {name for name, ring in values.items() if ring in opening}
    assert given >= {f"BANKSIDE_{name}_KEYS" for name in kept | stored}
    assert not [name for name in given if "LEDGER_READ" in name or "RECONCILIATION" in name]
    assert len(set(rings)) == len(STORING) + len(SHARING)
    assert [LookupKeys(ring).key_ids[1:] for ring in lookups] == [("",)] * len(FINDING)
    for one, other in SHARING:
        names = (f"BANKSIDE_{one}_{other}_KEYS".upper(), f"BANKSIDE_{other}_{one}_KEYS".upper())
        assert secrets(checkout, one)[names[0]] == secrets(checkout, other)[names[1]]


def test_what_uses_a_server_names_it_and_is_stopped_before_it() -> None:
    """docker-compose 1.29 stops at once what no running container names: a server named by `migrate` alone, too."""
    for server, network in (("postgres", "database"), ("rabbitmq", "broker")):
        users = {name for name, row in OURS.items() if network in row["networks"]}
        assert users
        assert {name for name in users if server not in CONTAINERS[name]["depends_on"]} == set()


def test_containers_share_networks_with_what_they_must_reach_only() -> None:
    members: dict[str, set[str]] = {name: set() for name in COMPOSE["networks"]}
    for name, row in CONTAINERS.items():
        for network in row["networks"]:
            members[network].add(name)

    services = OURS.keys() - {"migrate", "provider_sandbox", "console"}
    assert members == {
        "callers": {"gateway"},
        "callbacks": {"webhook_dispatcher"},
        "providers": {*PROVIDER_APIS, "provider_sandbox"},
        "database": {*services, "provider_sandbox", "migrate", "postgres"},
        "broker": {*services, "rabbitmq", "prometheus"},
        "admin": {*services, "provider_sandbox", "console", "prometheus", "jaeger"},
        "operators": {"gateway", "console"},
        "browsers": {"console"},
        "observers": {"prometheus", "grafana", "jaeger"},
    }
    internal = {name for name, row in COMPOSE["networks"].items() if (row or {}).get("internal")}
    assert internal == {"database", "broker", "admin", "operators"}


@with_each(CONTAINERS)
def test_every_container_is_hardened_and_bounded(name: str) -> None:
    row = CONTAINERS[name]

    assert row["read_only"] is True
    assert row["cap_drop"] == ["ALL"]
    assert row["security_opt"] == ["no-new-privileges:true"]
    assert row["mem_limit"]
    assert row["cpus"]
    assert row["pids_limit"]
    assert row["logging"] == {
        "driver": "json-file",
        "options": {"max-size": "50m", "max-file": "5"},
    }
    assert name not in OURS or "cap_add" not in row
    assert all(port.startswith("127.0.0.1:") for port in row.get("ports", ()))


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_a_health_check_asks_the_service_and_no_proxy(status: int, healthy: bool) -> None:
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/ready" else 404)
            self.end_headers()

    [_, _, *check] = COMPOSE["x-service"]["healthcheck"]["test"]
    with HTTPServer((LOOPBACK, 0), Ready) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        checked = subprocess.run(
            [sys.executable, *check],
            env={
                "BANKSIDE_ADMIN_HOST": LOOPBACK,
                "BANKSIDE_ADMIN_PORT": str(server.server_port),
                "HTTP_PROXY": NOWHERE,
                "http_proxy": NOWHERE,
            },
            cwd=ROOT,
            capture_output=True,
            timeout=60 * pace(),
            check=False,
        )
        server.shutdown()

    assert (checked.returncode == 0) == healthy
