"""A gateway that starts while its database is away."""

from __future__ import annotations

from pathlib import Path

from tests.integration.gateway.desk import GATEWAY, until
from tests.support.infrastructure import Environment
from tests.support.routes import route_to
from tests.support.stack import Stack


async def test_a_gateway_that_starts_waits_for_its_database(
    gateway_environment: Environment, tmp_path: Path
) -> None:
    urls = gateway_environment.database_urls
    async with route_to(urls["gateway"]) as route:
        route.refuse()
        behind_it = gateway_environment.with_urls(
            database_urls={**urls, "gateway": route.url}, amqp_url=gateway_environment.amqp_url
        )
        stack = Stack(behind_it, tmp_path, GATEWAY)
        gateway = stack.services["gateway"]
        try:
            gateway.spawn()
            pid = gateway.pid

            async def is_waiting() -> bool:
                return "database_away" in gateway.log

            await until(is_waiting)
            route.accept()
            await gateway.ready()

            assert gateway.pid == pid
        finally:
            await stack.stop()
    assert "Traceback" not in gateway.log
