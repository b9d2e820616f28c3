"""One port, N processes: the parent supervises N children that share the port (SO_REUSEPORT).

Child i has its admin port at `BANKSIDE_GATEWAY_ADMIN_PORT` + i. With one process there is no parent.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

import structlog

from libs.runtime.logging import configure_logging
from libs.runtime.process import Misconfigured, run
from libs.runtime.settings import EXIT_MISCONFIGURED
from libs.runtime.supervision import Change, ChildSpec, Supervisor
from services.gateway.app import serve
from services.gateway.settings import Settings

CHILD_VARIABLE = "BANKSIDE_GATEWAY_CHILD"


def main() -> None:
    """The gateway's command line."""
    parser = argparse.ArgumentParser(prog="gateway", description=__doc__)
    parser.add_argument("--processes", type=int, help="processes that share the port")
    arguments = parser.parse_args()
    if arguments.processes is not None:
        os.environ["BANKSIDE_GATEWAY_PROCESSES"] = str(arguments.processes)
    settings = Settings.load()
    if settings.processes == 1 or CHILD_VARIABLE in os.environ:
        run(Settings, serve)
        return
    try:
        settings.encryption()  # each child would refuse it, again and again
    except Misconfigured as error:
        print(f"{settings.service}: {error}", file=sys.stderr)
        sys.exit(EXIT_MISCONFIGURED)
    asyncio.run(_supervise(settings))


async def _supervise(settings: Settings) -> None:
    configure_logging(settings.service, settings.log_level)
    log = structlog.get_logger("gateway")
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)

    def report(change: Change) -> None:
        log.info("child", child=change.child, state=change.state.value, detail=change.detail)

    async with Supervisor(report) as supervisor:
        for number in range(settings.processes):
            supervisor.start(_child(settings, number))
        await stop.wait()


def _child(settings: Settings, number: int) -> ChildSpec:
    admin_port = settings.admin_port + number if settings.admin_port else 0
    return ChildSpec(
        name=f"gateway-{number}",
        command=(sys.executable, "-m", "services.gateway"),
        env={
            **os.environ,
            CHILD_VARIABLE: str(number),
            "BANKSIDE_GATEWAY_ADMIN_PORT": str(admin_port),
        },
        stop_seconds=settings.shutdown_seconds + 2,
    )
