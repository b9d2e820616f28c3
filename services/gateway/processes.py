"""N processes, which share the ports of both listeners (SO_REUSEPORT): the parent supervises N children.

Child i has its admin port at `BANKSIDE_GATEWAY_ADMIN_PORT` + i. With one process there is no parent, and SIGHUP is
logged and has no effect, as at a child.

On SIGHUP the parent replaces its children one after the other, so that they read files of secrets anew: how a key ring
changes without a request that fails. A child that is not ready in time ends the replacement: it is started again with
sockets that are given no connections until it listens, and the others stay. Without admin ports no child can be asked
whether it is ready, and none is replaced.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import structlog

from libs.runtime.accepting import addresses_of
from libs.runtime.logging import configure_logging
from libs.runtime.probes import http_ready
from libs.runtime.process import EXIT_CRASHED, Misconfigured, Process, run
from libs.runtime.settings import EXIT_MISCONFIGURED
from libs.runtime.supervision import Change, ChildSpec, NotReady, Supervisor
from libs.runtime.supervision_state import ChildState
from services.gateway.app import serve
from services.gateway.listening import ChildSockets, for_operators, public
from services.gateway.settings import Settings

CHILD_VARIABLE = "BANKSIDE_GATEWAY_CHILD"
REPLACED_SECONDS = 60.0
"""A child that is not ready within this time ends the replacement."""
NO_ADMIN_PORTS = "set BANKSIDE_GATEWAY_ADMIN_PORT: it tells whether a new process is ready."


def main() -> None:
    """The gateway's command line."""
    parser = argparse.ArgumentParser(prog="gateway", description=__doc__)
    parser.add_argument("--processes", type=int, help="processes that share the port")
    arguments = parser.parse_args()
    if arguments.processes is not None:
        os.environ["BANKSIDE_GATEWAY_PROCESSES"] = str(arguments.processes)
    settings = Settings.load()
    # Until its handler is set, the signal would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if settings.processes == 1 or CHILD_VARIABLE in os.environ:
        run(Settings, _serve_despite_sighup)
        return
    try:
        settings.encryption()  # each child would refuse it, again and again
    except Misconfigured as error:
        print(f"{settings.service}: {error}", file=sys.stderr)
        sys.exit(EXIT_MISCONFIGURED)
    try:
        asyncio.run(_supervise(settings))
    except OSError as error:
        print(f"{settings.service}: cannot listen: {error.strerror}.", file=sys.stderr)
        sys.exit(EXIT_CRASHED)


@asynccontextmanager
async def _serve_despite_sighup(settings: Settings, process: Process) -> AsyncIterator[None]:
    """As `serve`. SIGHUP would end the process without draining, and there is none to take its place."""

    def ignore() -> None:
        process.log.warning("sighup_ignored", because="only a parent of processes replaces them")

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, ignore)
    async with serve(settings, process):
        yield


async def _supervise(settings: Settings) -> None:
    configure_logging(settings.service, settings.log_level)
    log = structlog.get_logger("gateway")
    stop, replace = asyncio.Event(), asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, replace.set)
    sockets: dict[str, dict[str, ChildSockets]] = {
        _name(number): {} for number in range(settings.processes)
    }
    for at in (public(settings), for_operators(settings)):
        addresses = await addresses_of(at.host, at.port)
        for of_child in sockets.values():
            of_child[at.passed_on] = ChildSockets(addresses)

    def renew(name: str) -> None:
        for of_listener in sockets[name].values():
            of_listener.renew()

    def report(change: Change) -> None:
        log.info(
            "gateway_process_changed",
            child=change.child,
            state=change.state.value,
            detail=change.detail,
        )
        if change.state is ChildState.DIED:
            renew(change.child)

    async with Supervisor(report) as supervisor:
        for number in range(settings.processes):
            supervisor.start(_child(settings, number, sockets[_name(number)]))
        replacing = asyncio.create_task(
            replace_for_ever(supervisor, replace, renew), name="replacing"
        )
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({replacing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if replacing.done():
                replacing.result()
        finally:
            for task in (replacing, stopping):
                task.cancel()
            await asyncio.wait({replacing, stopping})
            # At the same time: a connection to the socket of a child that is gone would wait for the others to end.
            async with asyncio.TaskGroup() as group:
                for name in list(supervisor.children):
                    group.create_task(supervisor.stop(name), name=f"stop:{name}")


async def replace_for_ever(
    supervisor: Supervisor, wanted: asyncio.Event, renew: Callable[[str], None]
) -> None:
    """Replace all children, one after the other, whenever it is wanted.

    Args:
        renew: renews the sockets of the child of this name, which does not run.
    """
    log = structlog.get_logger("gateway")
    while True:
        await wanted.wait()
        wanted.clear()
        settings, problems = Settings.examine()
        if problems := problems or [*(settings.problems() if settings else ())]:
            log.error("children_not_replaced", because=problems)
            continue
        if any(child.spec.ready is None for child in supervisor.children.values()):
            log.error("children_not_replaced", because=[NO_ADMIN_PORTS])
            continue
        for name, spec in [(name, child.spec) for name, child in supervisor.children.items()]:
            await supervisor.stop(name)
            supervisor.start(spec)
            try:
                await supervisor.until_ready([name], REPLACED_SECONDS)
            except NotReady:
                log.exception("children_not_replaced")
                # Its sockets listen, so connections that it does not accept wait at them.
                await supervisor.stop(name)
                renew(name)
                supervisor.start(spec)
                break
        else:
            log.info("children_replaced")


def _name(number: int) -> str:
    return f"gateway-{number}"


def _child(settings: Settings, number: int, sockets: Mapping[str, ChildSockets]) -> ChildSpec:
    admin_port = settings.admin_port + number if settings.admin_port else 0
    return ChildSpec(
        name=_name(number),
        command=(sys.executable, "-m", "services.gateway"),
        env={
            **os.environ,
            CHILD_VARIABLE: str(number),
            **{
                variable: ",".join(map(str, of_listener.descriptors))
                for variable, of_listener in sockets.items()
            },
            "BANKSIDE_GATEWAY_ADMIN_PORT": str(admin_port),
        },
        ready=http_ready(settings.admin_host, admin_port) if admin_port else None,
        watch=False,
        pass_fds=tuple(
            descriptor for of_listener in sockets.values() for descriptor in of_listener.descriptors
        ),
        stop_seconds=settings.shutdown_seconds + 2,
    )
