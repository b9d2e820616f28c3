"""Metrics of the connection pools of a service, read when Prometheus asks for them."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Gauge

IN_USE = Gauge(
    "bankside_database_connections_in_use",
    "Connections of a pool that are handed out; at the limit, the next one waits.",
    ["pool", "driver"],
)
LIMIT = Gauge(
    "bankside_database_connections_limit", "Connections of a pool at most.", ["pool", "driver"]
)


def observe_pool(pool: str, driver: str, in_use: Callable[[], int], limit: int) -> None:
    """Show this pool instead of an earlier one of the same name and driver."""
    IN_USE.labels(pool, driver).set_function(in_use)
    LIMIT.labels(pool, driver).set(limit)
