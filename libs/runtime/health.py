"""The admin port: `/health` (the process runs), `/ready` (it can work), `/metrics` (Prometheus).

Never on the public port: its answers are for the operator's network.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

Check = Callable[[], Awaitable[None]]
"""Returns when the part is usable; raises otherwise."""

CHECK_SECONDS = 2.0
LOGGED_AFTER_SECONDS = 5.0
"""A check that fails for longer is logged. Shorter failures are ordinary, as of a feed that has just begun."""

READY = Gauge(
    "bankside_ready",
    "1 when a check of readiness passes; `process` is 0 until the service has started, and once it stops.",
    ["check"],
)


class Readiness:
    """Ready once switched on, while every check passes."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._failing_since: dict[str, float] = {}
        """By name of a check that failed when it was last made (monotonic clock)."""
        self._logged: set[str] = set()
        self._on = False
        self._log = structlog.get_logger("readiness")

    def add(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def switch(self, on: bool) -> None:
        self._on = on
        self._failing_since.clear()

    async def failures(self) -> list[str]:
        """Names of the checks that fail; none when ready."""
        if not self._on:
            return ["process"]
        return [name for name, passes in (await self._results()).items() if not passes]

    async def measure(self) -> None:
        """Set the metric of each check, also while the process starts: it may be waiting for one of them to pass."""
        results = await self._results()
        for name, passes in {"process": self._on, **results}.items():
            READY.labels(name).set(passes)

    async def _results(self) -> dict[str, bool]:
        checks = dict(self._checks)  # a process that starts may add one meanwhile
        results = await asyncio.gather(*(self._passes(*named) for named in checks.items()))
        return dict(zip(checks, results, strict=True))

    async def _passes(self, name: str, check: Check) -> bool:
        """Whether the check passes. A failure that lasts is logged once, until the check passes again.

        While the process starts or stops, none is logged.
        """
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await check()
        except Exception as error:  # any failure of a check is its answer
            since = self._failing_since.setdefault(name, time.monotonic())
            is_long = time.monotonic() - since >= LOGGED_AFTER_SECONDS
            if self._on and is_long and name not in self._logged:
                self._logged.add(name)
                # The text of an error may name what must not be in a log; the log shows types and places alone.
                self._log.warning(
                    "readiness_failed", check=name, error=type(error).__name__, exc_info=error
                )
            return False
        self._failing_since.pop(name, None)
        self._logged.discard(name)
        return True


class NoProgress(Exception):
    """The loop has completed no round for too long, or none yet."""


class Progress:
    """The readiness check of a loop: ready while its last completed round is recent.

    Args:
        limit_seconds: how long one round may take, its waits included.
    """

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._last: float | None = None

    def made(self) -> None:
        """Called by the loop after each round."""
        self._last = time.monotonic()

    async def check(self) -> None:
        """For `Readiness.add`.

        Raises:
            NoProgress
        """
        if self._last is None or time.monotonic() - self._last > self._limit_seconds:
            raise NoProgress


def admin_application(service: str, readiness: Readiness) -> web.Application:
    async def health(_: web.Request) -> web.Response:
        return web.json_response({"service": service, "status": "ok"})

    async def ready(_: web.Request) -> web.Response:
        failures = await readiness.failures()
        body = {
            "service": service,
            "status": "waiting" if failures else "ready",
            "waiting_for": failures,
        }
        return web.json_response(body, status=503 if failures else 200)

    async def metrics(_: web.Request) -> web.Response:
        await readiness.measure()
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.router.add_get("/health", health)
    application.router.add_get("/ready", ready)
    application.router.add_get("/metrics", metrics)
    return application


async def serve_admin(service: str, readiness: Readiness, host: str, port: int) -> web.AppRunner:
    """Listen on the admin port, at every address of `host` that is this machine's: a name that replicas share in a
    network of containers has the others' addresses, too. The caller cleans the runner up.

    Raises OSError.
    """
    runner = web.AppRunner(
        admin_application(service, readiness),
        access_log=None,
        keepalive_timeout=30,
        shutdown_timeout=1,
    )
    await runner.setup()
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    not_ours: OSError | None = None
    for address in dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found):
        try:
            await web.TCPSite(runner, address, port).start()
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            not_ours = error
    if not_ours is not None and not runner.addresses:
        raise not_ours
    return runner
