"""The life of a service's process: settings, logs, admin port, background tasks, orderly end.

    async def serve(settings: Settings, process: Process) -> AsyncIterator[None]   # an async context manager

enters with everything started and leaves with everything closed. On SIGTERM or SIGINT readiness goes off first, then
`serve` leaves, bounded by `shutdown_seconds`; one that is still starting, such as waiting for its database, is
cancelled. A background task that dies ends the process loudly (exit 70), so that the supervisor starts it anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import structlog
import uvloop
from prometheus_client import disable_created_metrics

from libs.runtime import crash, event_loop
from libs.runtime.health import Readiness, serve_admin
from libs.runtime.logging import configure_logging
from libs.runtime.settings import EXIT_MISCONFIGURED, ProcessSettings
from libs.runtime.tracing import TracingNotInstalled, traced

SettingsT = TypeVar("SettingsT", bound=ProcessSettings)
Serve = Callable[[SettingsT, "Process"], AbstractAsyncContextManager[None]]

EXIT_CRASHED = 70
YOUNG_OBJECTS = 10_000
"""New objects between two garbage collections. Few are garbage: reference counting frees nearly all."""


class Misconfigured(Exception):
    """A setting cannot work. Each argument is a sentence for the operator."""


class Process:
    """What `serve` gets: a name, readiness, and a place for background tasks."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.readiness = Readiness()
        self.log = structlog.get_logger(service)
        self.has_started = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: BaseException) -> None:
        """End the process because a part of it cannot go on."""
        if not self._failed.done():
            self._failed.set_exception(error)

    @contextlib.asynccontextmanager
    async def background(self, name: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """Run `work` beside the body of the `async with`; cancel it on leaving. Its death ends the process."""
        is_leaving = False

        def on_end(task: asyncio.Task[None]) -> None:
            # `task.cancelling()` would not tell whether the end is wanted: see libs.gathering.
            if not (is_leaving and task.cancelled()):
                self._died(task)

        task = asyncio.create_task(work, name=name)
        task.add_done_callback(on_end)
        try:
            yield
        finally:
            is_leaving = True
            task.cancel()
            await asyncio.wait({task})

    def _died(self, task: asyncio.Task[None]) -> None:
        error: BaseException
        if task.cancelled():
            error = RuntimeError("a background task was cancelled by what it waited for")
        else:
            error = task.exception() or RuntimeError("a background task ended")
        self.log.error("task_died", task=task.get_name(), exc_info=error)
        self.fail(error)

    async def until_failure(self) -> None:
        # Shielded: the cancellation of one waiter would cancel the future, and `fail` could not set it any more.
        await asyncio.shield(self._failed)


async def _run(settings: SettingsT, serve: Serve[SettingsT]) -> int:
    if settings.is_production and (refusals := await settings.refusals_at_start()):
        raise Misconfigured(*refusals)
    process = Process(settings.service)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    admin = await serve_admin(
        settings.service, process.readiness, settings.admin_host, settings.admin_port
    )
    waits = {
        asyncio.create_task(stop.wait(), name="stop"),
        asyncio.create_task(process.until_failure(), name="failure"),
    }
    measuring = asyncio.create_task(event_loop.measure_for_ever(), name="event-loop-lag")
    try:
        starting = asyncio.create_task(_serve_until(serve(settings, process), process, waits))
        await asyncio.wait({starting, *waits}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            if not process.has_started:
                starting.cancel()
            await asyncio.wait({starting}, timeout=settings.shutdown_seconds)
        if not starting.done():
            process.log.error("shutdown_too_slow", seconds=settings.shutdown_seconds)
            starting.cancel()
            await asyncio.wait({starting}, timeout=2)
        if starting.done() and not starting.cancelled():
            return starting.result()
        return 0 if stop.is_set() and starting.done() and not process.has_started else EXIT_CRASHED
    finally:
        for task in (*waits, measuring):
            task.cancel()
        await asyncio.gather(*waits, measuring, return_exceptions=True)
        await admin.cleanup()


async def _serve_until(
    context: AbstractAsyncContextManager[None], process: Process, waits: set[asyncio.Task[Any]]
) -> int:
    """Hold `serve` open until a signal or a failure; the exit code."""
    async with context:
        process.has_started = True
        _spare_garbage_collection()
        process.readiness.switch(True)
        process.log.info("ready")
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        process.readiness.switch(False)
        failed = any(task.exception() is not None for task in done)
        process.log.info("stopping", failed=failed)
    return EXIT_CRASHED if failed else 0


def _spare_garbage_collection() -> None:
    """Exempt the objects of a started service from garbage collection: they are never freed, and traversing them took a
    tenth of the time of a busy service.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def run(settings_type: type[SettingsT], serve: Serve[SettingsT]) -> None:
    """The whole of a service's `__main__`."""
    settings = settings_type.load()
    configure_logging(settings.service, settings.log_level)
    disable_created_metrics()  # type: ignore[no-untyped-call] # a sample more of each, which nothing reads
    crash.arm(settings.crash_at)
    try:
        with traced(settings.service, settings.collector):
            code = uvloop.run(_run(settings, serve))
    except (Misconfigured, TracingNotInstalled) as error:
        for sentence in error.args:
            print(f"{settings.service}: {sentence}", file=sys.stderr)
        sys.exit(EXIT_MISCONFIGURED)
    except OSError as error:
        print(f"{settings.service}: cannot listen or connect: {error.strerror}.", file=sys.stderr)
        sys.exit(EXIT_CRASHED)
    sys.exit(code)
