"""PostgreSQL and RabbitMQ for the tests, once for a whole run and all of its workers.

A process, the `keeper`, runs both servers and makes what environments consist of: a database with every role and
schema, and a virtual host.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.rabbitmq import RabbitMQ, find_server, urls_of_services
from deploy.local.services import DATABASE, OWNERS, Secrets
from libs.runtime.supervision import Supervisor
from tests.support.ports import free_ports
from tests.support.run_server import connection_to

START_SECONDS = 90.0
FIRST_LIFE = """
DO $$ DECLARE life regclass; BEGIN
    FOR life IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE tablename = 'database_life' LOOP
        EXECUTE format('UPDATE %s SET started_at = pg_postmaster_start_time()', life);
    END LOOP;
END $$
"""
"""The server's present life becomes the one in which the tables were made. As in a later one, each service would look
up every write before it sends it, until it has found that nothing was lost: see `libs.persistence.continuity`.
"""


class Environment:
    """A database and a virtual host that no other test uses. Each may be made when its URL is first asked for."""

    def __init__(
        self,
        database: str,
        database_urls: Mapping[str, str] | Callable[[], Mapping[str, str]],
        amqp_url: str | Callable[[], str],
        secrets: Secrets,
        cluster: Callable[[], Path] | None = None,
    ) -> None:
        self.database = database
        self.secrets = secrets
        self._database_urls = database_urls
        self._amqp_url = amqp_url
        self._cluster = cluster

    @cached_property
    def database_urls(self) -> Mapping[str, str]:
        """By role; "postgres" is the superuser."""
        urls = self._database_urls
        return urls() if callable(urls) else urls

    @cached_property
    def amqp_url(self) -> str:
        url = self._amqp_url
        return url() if callable(url) else url

    @cached_property
    def amqp_urls(self) -> Mapping[str, str]:
        """Each service's own, with its user. `amqp_url` is the administrator's, who here may also name others as the
        sender of a message.
        """
        return urls_of_services(self.amqp_url, self.secrets.amqp_passwords)

    @property
    def cluster(self) -> Path:
        """Data of a stopped PostgreSQL server with these secrets and every table, to be copied; see `new_cluster`."""
        assert self._cluster is not None, "an environment of a test run"
        return self._cluster()

    def with_urls(
        self, *, database_urls: Mapping[str, str] | None = None, amqp_url: str | None = None
    ) -> Environment:
        """The same, with other servers or by another way; what it takes from here is made when it is asked for."""
        return Environment(
            self.database,
            database_urls or (lambda: self.database_urls),
            amqp_url or (lambda: self.amqp_url),
            self.secrets,
            self._cluster,
        )


def environment_urls(postgres: Postgres, secrets: Secrets, database: str) -> dict[str, str]:
    urls = {
        role: postgres.url(role, password, database)
        for role, password in secrets.role_passwords.items()
    }
    return {SUPERUSER: postgres.url(SUPERUSER, secrets.superuser_password, database)} | urls


def migrate(
    database_urls: Mapping[str, str],
    *,
    python: str | Path = sys.executable,
    folder: Path | None = None,
) -> None:
    """Run every service's migrations, as `make migrate` does.

    Args:
        folder: of the release; this checkout by default.
    """
    urls = {
        f"BANKSIDE_{prefix}_DATABASE_URL": database_urls[role] for role, prefix in OWNERS.items()
    }
    done = subprocess.run(
        [python, "-m", "libs.persistence.migrations"],
        env=os.environ | urls,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"migrations failed: {done.stdout}{done.stderr}")


def new_postgres(home: Path, secrets: Secrets) -> Postgres:
    """A server for tests: it may be killed without losing anything, but the machine may not."""
    return Postgres(home, free_ports(1)[0], secrets.superuser_password, durable=False)


async def new_cluster(postgres: Postgres, secrets: Secrets) -> Path:
    """Make the server's data: `DATABASE` with every role, schema and table. It does not run afterwards."""
    await asyncio.to_thread(postgres.initialise)
    async with Supervisor() as supervisor:
        supervisor.start(postgres.child(postgres.home / "postgres.log"))
        await supervisor.until_ready(["postgres"], START_SECONDS)
        await postgres.create_database(DATABASE)
        await asyncio.to_thread(postgres.create_schemas, DATABASE, secrets.schema_passwords())
        await asyncio.to_thread(migrate, environment_urls(postgres, secrets, DATABASE))
    return postgres.data


def copy_cluster(cluster: Path, postgres: Postgres) -> None:
    """Give a server that was not started yet a copy of this data (`new_cluster`)."""
    postgres.home.mkdir()
    # Not by shutil: the copy has to belong to the account that PostgreSQL runs as.
    copy = ["cp", "--archive", str(cluster), str(postgres.data)]
    subprocess.run(copy, timeout=START_SECONDS, check=True)
    postgres.initialise()  # the data is there: only the way to it is opened


def new_rabbitmq(home: Path, secrets: Secrets) -> RabbitMQ:
    server = find_server()
    if server is None:
        raise RuntimeError("RabbitMQ is not installed: run `make up` once, or install it.")
    port, distribution_port, epmd_port = free_ports(3)
    return RabbitMQ(
        server,
        home,
        port,
        distribution_port,
        epmd_port,
        name=f"bankside_tests_{port}",
        password=secrets.rabbitmq_password,
        passwords=secrets.amqp_passwords,
        cookie=secrets.erlang_cookie,
        administrator_tags=("administrator", "impersonator"),
    )


class Infrastructure:
    """A connection to the keeper of the test run, which is started when there is none."""

    def __init__(self) -> None:
        self._socket = connection_to("tests.support.keeper")
        self._socket.settimeout(START_SECONDS)
        self._file = self._socket.makefile("rwb")

    def create(self, *, migrated: bool = True) -> Environment:
        """A new environment; `migrated`: with the tables of all services."""
        named = self._ask({"do": "name"})
        name: str = named["name"]

        def make_database() -> Mapping[str, str]:
            made = self._ask({"do": "make database", "name": name, "migrated": migrated})
            urls: Mapping[str, str] = made["database_urls"]
            return urls

        def make_vhost() -> str:
            return str(self._ask({"do": "make vhost"})["amqp_url"])

        def find_cluster() -> Path:
            return Path(self._ask({"do": "find cluster"})["cluster"])

        secrets = Secrets.from_json(named["secrets"])
        return Environment(name, make_database, make_vhost, secrets, find_cluster)

    def drop(self, environment: Environment) -> None:
        """Drop its database, if it was made. A virtual host stays until the server ends: dropping it takes a second."""
        if "database_urls" in vars(environment):
            self._ask({"do": "drop database", "name": environment.database})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._file.write(json.dumps(request).encode() + b"\n")
        self._file.flush()
        line = self._file.readline()
        if not line:
            raise RuntimeError("the keeper of the test servers died")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()
