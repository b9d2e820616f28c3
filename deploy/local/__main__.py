"""The stack on this machine: `python -m deploy.local COMMAND`, which is what `make` calls."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from deploy.local import chromium, faketime, node, promtool
from deploy.local.banks import BANKS
from deploy.local.down import clean, down
from deploy.local.stack import migrate, own_rabbitmq, runs_own_rabbitmq, supervise
from deploy.local.state import LocalState
from deploy.local.status import status
from deploy.local.up import ensure_rabbitmq, up
from libs.client.errors import OperatorError

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "up": "start everything and wait until it is ready",
    "down": "stop everything, keep the data",
    "status": "show every part; exit 0 when all is ready",
    "logs": "follow the logs, all or of one part",
    "clean": "stop everything and remove its data",
    "env": "print the settings of the stack",
    "migrate": "bring the database of the running stack to its newest revision",
    "rabbitmqctl": "run RabbitMQ's rabbitmqctl for the stack's own node, with all arguments that follow",
    "requirements": "install what the tests need beyond Python packages",
    "supervise": "run the stack in the foreground (what `up` starts)",
}


class Extra(NamedTuple):
    """A program that some tests need, and are left out without."""

    name: str
    package: str
    ensure: Callable[[LocalState], str | None]


EXTRAS = {
    "browser": Extra("Chromium", chromium.PACKAGE, chromium.ensure_chromium),
    "node": Extra("Node", node.PACKAGE, node.ensure_typescript),
    "faketime": Extra("libfaketime", faketime.PACKAGE, faketime.ensure_faketime),
    "promtool": Extra("promtool", promtool.PACKAGE, promtool.ensure_promtool),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name == "up":
            command.add_argument("--bank", help=f"of a new stack: {' or '.join(BANKS)}")
        if name == "logs":
            command.add_argument(
                "part", nargs="?", help="a service, postgres, rabbitmq, supervisor"
            )
        if name == "requirements":
            for option, extra in EXTRAS.items():
                command.add_argument(f"--{option}", action="store_true", help=f"{extra.name}, too")
    own, handed_on = _split(sys.argv[1:])
    arguments = parser.parse_args(own)
    try:
        return run(
            arguments.command,
            LocalState(ROOT / ".local"),
            part=getattr(arguments, "part", None),
            arguments=handed_on,
            bank=getattr(arguments, "bank", None),
            extras=[name for name in EXTRAS if getattr(arguments, name, False)],
        )
    except OperatorError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        print(f"The disk is full: {error.filename or ROOT} cannot be written.", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def run(
    command: str,
    state: LocalState,
    *,
    part: str | None = None,
    arguments: Sequence[str] = (),
    bank: str | None = None,
    extras: Iterable[str] = (),
) -> int:
    match command:
        case "up":
            with state.locked():
                up(state, bank)
        case "down" | "clean":
            with state.locked():
                {"down": down, "clean": clean}[command](state)
        case "status":
            return 0 if asyncio.run(status(state)) else 1
        case "logs":
            follow(state, part)
        case "env":
            if not state.environment.exists():
                raise OperatorError("There are no settings yet: `make up` makes them.")
            print(state.environment.read_text(), end="")
        case "migrate":
            state.claim()
            asyncio.run(migrate(state, state.read_environment()))
        case "rabbitmqctl":
            return control_broker(state, arguments)
        case "requirements":
            state.create()
            ensure_rabbitmq(state)
            for name in extras:
                extra = EXTRAS[name]
                _say_missing(extra.name, extra.package, extra.ensure(state))
        case "supervise":
            asyncio.run(supervise(state))
    return 0


def _split(typed: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our arguments, and those of `rabbitmqctl`. argparse refuses options before the first of a `REMAINDER`."""
    ours = 1 if typed[:1] == ["rabbitmqctl"] else len(typed)
    return typed[:ours], typed[ours:]


def control_broker(state: LocalState, arguments: Sequence[str]) -> int:
    remembered = state.remembered()
    if remembered is None or not runs_own_rabbitmq(remembered, state.read_environment()):
        raise OperatorError(
            "No RabbitMQ of this stack runs here: run rabbitmqctl where the broker is."
        )
    return own_rabbitmq(state, remembered, ensure_rabbitmq(state)).control(arguments)


def _say_missing(program: str, package: str, reason: str | None) -> None:
    """Nothing without a reason."""
    if reason is not None:
        print(
            f"{program} is not installed and could not be: {reason}. What needs it is left out; install it"
            f" (`apt-get install {package}`) to have that, too.",
            file=sys.stderr,
        )


def follow(state: LocalState, part: str | None) -> None:
    """Become `tail`, on the log of one part or on all."""
    logs = [state.log(part)] if part else sorted(state.logs.glob("*.log"))
    if not logs or not all(log.exists() for log in logs):
        known = ", ".join(sorted(log.stem for log in state.logs.glob("*.log"))) or "none yet"
        raise OperatorError(
            f"There is no log of {part or 'the stack'} here; the logs are: {known}."
        )
    os.execvp("tail", ["tail", "-n", "20", "-F", *(str(log) for log in logs)])  # noqa: S606, S607


if __name__ == "__main__":
    sys.exit(main())
