"""What the stack of a run stands on: PostgreSQL with a synchronous standby, and three RabbitMQ nodes.

Services know one address of each, as behind a load balancer: a route that leads to the server that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deploy.local.ports import LOOPBACK
from deploy.local.services import DATABASE, Secrets
from libs.runtime.supervision import Supervisor
from tests.faults.campaign.postgres_pair import PostgresPair
from tests.faults.campaign.rabbitmq_cluster import RabbitMQCluster
from tests.support.balancer import Balancer, balancer
from tests.support.infrastructure import Environment, environment_urls, migrate

VHOST = "bankside"


@dataclass(frozen=True)
class Servers:
    environment: Environment
    postgres: PostgresPair
    rabbitmq: RabbitMQCluster
    database_route: Balancer
    broker_route: Balancer


@contextlib.asynccontextmanager
async def running_cluster(home: Path) -> AsyncIterator[Servers]:
    """All of it, ready, with every table and the virtual host.

    Args:
        home: an empty folder for data and logs, which PostgreSQL can enter even if it runs as another user.
    """
    secrets = Secrets.generate()
    async with AsyncExitStack() as opened:
        supervisor = await opened.enter_async_context(Supervisor())
        rabbitmq = RabbitMQCluster(home / "rabbitmq", secrets, supervisor)
        await opened.enter_async_context(rabbitmq.running())
        postgres = PostgresPair(home / "postgres", secrets, supervisor)
        await opened.enter_async_context(postgres.running())
        database_route = await opened.enter_async_context(balancer(postgres.addresses))
        broker_route = await opened.enter_async_context(balancer(rabbitmq.addresses))
        urls = environment_urls(postgres.primary, secrets, DATABASE)
        await postgres.primary.create_database(DATABASE)
        await asyncio.to_thread(
            postgres.primary.create_schemas, DATABASE, secrets.schema_passwords()
        )
        await asyncio.to_thread(migrate, urls)
        amqp_url = through(rabbitmq.url(VHOST), broker_route.port)
        environment = Environment(DATABASE, _through_all(urls, database_route), amqp_url, secrets)
        yield Servers(environment, postgres, rabbitmq, database_route, broker_route)


def _through_all(urls: Mapping[str, str], route: Balancer) -> dict[str, str]:
    return {role: through(url, route.port) for role, url in urls.items()}


def through(url: str, port: int) -> str:
    """The same URL at another port of this machine."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{login}@{LOOPBACK}:{port}").geturl()
