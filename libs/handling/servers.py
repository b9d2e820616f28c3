"""A service's broker and database, opened as its settings say. Each has its check of readiness."""

from __future__ import annotations

from typing import Protocol

from pydantic import SecretStr

from libs.messaging.broker import Broker
from libs.persistence.engine import Database, open_database
from libs.runtime.process import Process
from libs.runtime.service_settings import MessagingSettings

BROKER_WAIT_SECONDS = 5.0
"""A service that starts waits up to this long for its first session with the broker."""


class DatabaseSettings(Protocol):
    """The settings of a service whose database has pools of a chosen size."""

    @property
    def database_url(self) -> SecretStr: ...

    @property
    def database_ca_file(self) -> str | None: ...

    @property
    def database_connections(self) -> int: ...


def broker_of(settings: MessagingSettings, process: Process) -> Broker:
    """The broker, not yet connected. Readiness check `broker`: see `Broker.ping`."""
    broker = Broker(
        settings.amqp_url.get_secret_value(),
        process.service,
        ca_file=settings.amqp_ca_file,
        probes=settings.broker_is_cluster,
    )
    process.readiness.add("broker", broker.ping)
    return broker


def database_of(
    settings: DatabaseSettings, process: Process, *, pool_size: int | None = None
) -> Database:
    """The database, connected to at first use; the caller closes it. Readiness check `database`: see `Database.ping`.

    Args:
        pool_size: instead of `settings.database_connections`.
    """
    database = open_database(
        settings.database_url.get_secret_value(),
        process.service,
        ca_file=settings.database_ca_file,
        pool_size=settings.database_connections if pool_size is None else pool_size,
    )
    process.readiness.add("database", database.ping)
    return database
