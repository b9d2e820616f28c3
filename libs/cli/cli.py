"""The `bankside` command line.

Commands are imported when they are called, so that the command starts quickly. Services add their operators' commands
as entry points of the group `OPERATORS` in pyproject.toml.
"""

from __future__ import annotations

import errno
import io
import logging
import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, version
from itertools import takewhile

from cyclopts import App, CycloptsError

from libs.cli.exit_status import INTERRUPTED, MISTAKE, REFUSED, UNKNOWN, status_of
from libs.cli.standard_output import discard_output
from libs.client.errors import OperatorError, UnknownOutcome
from libs.client.settings import load_stack_environment
from libs.contracts.errors import BanksideError

OPERATORS = "bankside.operator"
"""The group of entry points: the name of a command, and the cyclopts App of that name in a module of the service."""
OF_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Errors of writing standard output. Commands write no other files but saved keys, whose errors are told there."""

COMMANDS = (
    ("call", "libs.cli.call:call", "Sign a request, send it, show what came back."),
    (
        "keys",
        "libs.cli.keys:app",
        "Subscription keys: create, list, revoke, rotate, scopes, allow; reseal what is stored.",
    ),
    ("commands", "libs.cli.commands:app", "Commands that are not finished: list, retry, abandon."),
    ("trace", "libs.cli.trace:trace", "Show what became of a request, by the id in its answer."),
    ("dead", "libs.cli.dead:app", "Look at dead letters, have them accepted anew."),
    (
        "restores",
        "libs.cli.restores:app",
        "See to databases that went back behind what providers hold.",
    ),
    ("feeds", "libs.cli.feeds:app", "Provider feeds: where they stand, entries that stop them."),
    (
        "provider",
        "libs.cli.providers:app",
        "Which company has each provider role, what it promises and what it lacks.",
    ),
    (
        "audit",
        "libs.cli.audit:app",
        "What was done, by whom: verify that the record is whole, export it.",
    ),
    (
        "doctor",
        "libs.cli.doctor:doctor",
        "Find out, before services are started, what would keep them from working.",
    ),
    (
        "status",
        "libs.cli.status:status",
        "Does the gateway that the settings name answer, and does it take the key.",
    ),
    (
        "completion",
        "libs.cli.completion:completion",
        "Print the script by which a shell completes what is typed.",
    ),
    (
        "listen",
        "libs.cli.listening:listen",
        "Receive the webhooks of the running stack here, verify and show them.",
    ),
    (
        "events",
        "libs.cli.events:app",
        "The events of a key's tenant: follow them, resume from an id.",
    ),
    (
        "trigger",
        "libs.cli.trigger:trigger",
        "Have the simulated bank do what causes an event, such as wire.completed.",
    ),
    (
        "webhooks",
        "libs.cli.webhooks:app",
        "Webhooks: subscriptions that fail, their deliveries, resend.",
    ),
    (
        "differences",
        "libs.cli.differences:app",
        "What differs from the providers: list, show, explain.",
    ),
    ("reconcile", "libs.cli.differences:reconcile", "Compare all books with the providers' now."),
    (
        "wires",
        "libs.cli.wires:app",
        "Wires: list, show, approve, decline, cancel, resolve those of unknown outcome.",
    ),
    (
        "sagas",
        "libs.cli.sagas:app",
        "Commands of onboarding that are not finished, compensations refused.",
    ),
)
"""Name, where it is, and its line in the list of commands, which needs no import; its own help is its docstring."""


def make_app(arguments: list[str]) -> App:
    """The command with all its commands, none of them imported yet."""
    listed = not arguments or arguments[0].startswith("-")
    app = App(
        name="bankside",
        help="Call a Bankside gateway and operate its stack. Settings are the BANKSIDE_* variables, else those of the "
        "stack that runs in this checkout.",
        version=lambda: version("bankside"),
    )
    for name, place, line in COMMANDS:
        app.command(place, name=name, help=line if listed else None)
    for entry in _of_services():
        service = entry.value.split(".")[1].replace("_", " ")
        line = f"Manage the {entry.name} of the {service}."
        app.command(entry.value, name=entry.name, help=line if listed else None)
    return app


def _of_services() -> list[EntryPoint]:
    """Those of this distribution: to look through each that is installed takes half as long as a command."""
    try:
        own = distribution("bankside").entry_points
    except PackageNotFoundError:  # of a checkout that was never installed
        return []
    return sorted(own.select(group=OPERATORS))


def _silence_libraries() -> None:
    """No log lines of libraries: the command prints its errors as sentences."""
    logging.getLogger().addHandler(logging.NullHandler())
    structlog = sys.modules.get("structlog")  # slow to import, so only if the command did
    if structlog is not None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _options_last(arguments: list[str]) -> list[str]:
    """`bankside --json keys list` means `bankside keys list --json`."""
    leading = list(takewhile(lambda argument: argument == "--json", arguments))
    return [*arguments[len(leading) :], *leading]


def main() -> None:
    """Run the command, and end with its exit status."""
    if sys.stdout is None:
        _say("Standard output is closed: give it a file, such as /dev/null.")
        sys.exit(MISTAKE)
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # what its encoding lacks must not end a command after its request
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        load_stack_environment()
        arguments = _options_last(sys.argv[1:])
        command, bound, _ = make_app(arguments).parse_args(
            arguments, exit_on_error=False, print_error=False
        )
        _silence_libraries()
        result = command(*bound.args, **bound.kwargs)
        sys.stdout.flush()
    except UnknownOutcome as unknown:
        _say(str(unknown))
        sys.exit(UNKNOWN)
    except (OperatorError, CycloptsError) as mistake:
        _say(" ".join(line.strip() for line in str(mistake).splitlines()))
        sys.exit(MISTAKE)
    except ValueError as error:
        mended = _of_arguments(error)
        if mended is None:
            raise
        _say(mended)
        sys.exit(MISTAKE)
    except BanksideError as refusal:
        _say(f"{refusal.detail} ({refusal.code})")
        sys.exit(status_of(refusal))
    except KeyboardInterrupt:
        _say("Interrupted; what was begun may go on.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough
        discard_output()
        sys.exit(REFUSED)
    except OSError as error:
        if error.filename is not None or error.errno not in OF_OUTPUT:
            raise
        discard_output()
        _say(
            f"Standard output cannot be written: {error.strerror}. What was to be done may be done."
        )
        sys.exit(UNKNOWN)
    sys.exit(result if isinstance(result, int) else 0)


def _say(sentence: str) -> None:
    from libs.cli.output import one_line  # noqa: PLC0415 - only where something is wrong: the command starts quickly

    print(f"bankside: {one_line(sentence)}", file=sys.stderr)


def _of_arguments(error: ValueError) -> str | None:
    """The sentence of a command of the contracts that takes other values; None for any other error.

    Answers that are not of the contracts have an error of their own.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    from libs.client.operator_client import wrong_values  # noqa: PLC0415

    return wrong_values(error) if isinstance(error, ValidationError) else None
