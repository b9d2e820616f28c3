"""The `bankside` command line.

Commands are imported when they are called, so that the command starts quickly. Services add their operators' commands
as entry points: see `entries`.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import entry_points, version
from itertools import takewhile

from cyclopts import App, CycloptsError

from libs.cli.entries import OPERATORS
from libs.client.errors import OperatorError
from libs.client.settings import load_stack_environment
from libs.contracts.errors import BanksideError


def make_app(arguments: list[str]) -> App:
    """The command with all its commands, none of them imported yet."""
    listed = not arguments or arguments[0].startswith("-")
    app = App(
        name="bankside",
        help="Call a Bankside gateway and operate its stack. Settings are the BANKSIDE_* variables, else those of the "
        "stack that runs in this checkout.",
        version=lambda: version("bankside"),
    )
    app.command(
        "libs.cli.call:call", name="call", help="Sign a request, send it, show what came back."
    )
    app.command(
        "libs.cli.keys:app",
        name="keys",
        help="Subscription keys: create, list, revoke, rotate, scopes, allow; reseal what is stored.",
    )
    app.command(
        "libs.cli.commands:app",
        name="commands",
        help="Commands that are not finished: list, retry, abandon.",
    )
    app.command(
        "libs.cli.trace:trace",
        name="trace",
        help="Show what became of a request, by the id in its answer.",
    )
    app.command(
        "libs.cli.dead:app", name="dead", help="Look at dead letters, have them accepted anew."
    )
    app.command(
        "libs.cli.restores:app",
        name="restores",
        help="See to databases that went back behind what providers hold.",
    )
    app.command(
        "libs.cli.feeds:app",
        name="feeds",
        help="Provider feeds: where they stand, entries that stop them.",
    )
    app.command(
        "libs.cli.providers:app",
        name="provider",
        help="Which company has each provider role, what it promises and what it lacks.",
    )
    app.command(
        "libs.cli.audit:app",
        name="audit",
        help="What was done, by whom: verify that the record is whole, export it.",
    )
    app.command(
        "libs.cli.doctor:doctor",
        name="doctor",
        help="Find out, before services are started, what would keep them from working.",
    )
    app.command(
        "libs.cli.status:status",
        name="status",
        help="Does the gateway that the settings name answer, and does it take the key.",
    )
    app.command(
        "libs.cli.completion:completion",
        name="completion",
        help="Print the script by which a shell completes what is typed.",
    )
    app.command(
        "libs.cli.listening:listen",
        name="listen",
        help="Receive the webhooks of the running stack here, verify and show them.",
    )
    app.command(
        "libs.cli.events:app",
        name="events",
        help="The events of a key's tenant: follow them, resume from an id.",
    )
    app.command(
        "libs.cli.trigger:trigger",
        name="trigger",
        help="Have the sandbox do what causes an event, such as wire.completed.",
    )
    app.command(
        "libs.cli.webhooks:app",
        name="webhooks",
        help="Webhooks: subscriptions that fail, their deliveries, resend.",
    )
    app.command(
        "libs.cli.differences:app",
        name="differences",
        help="What differs from the providers: list, show, explain.",
    )
    app.command(
        "libs.cli.differences:reconcile",
        name="reconcile",
        help="Compare all books with the providers' now.",
    )
    app.command(
        "libs.cli.wires:app",
        name="wires",
        help="Wires: list, show, approve, decline, cancel, resolve those of unknown outcome.",
    )
    app.command(
        "libs.cli.sagas:app",
        name="sagas",
        help="Commands of onboarding that are not finished, compensations refused.",
    )
    for entry in sorted(entry_points(group=OPERATORS)):
        service = entry.value.split(".")[1].replace("_", " ")
        # In the list a line that needs no import; the command itself shows its own.
        app.command(
            entry.value, name=entry.name, help=f"For operators of {service}." if listed else None
        )
    return app


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
    """Run the command; exit status 0 done, 1 refused by the service, 2 an error that the operator can mend.

    130 after Ctrl-C, as shells have it.
    """
    try:
        load_stack_environment()
        arguments = _options_last(sys.argv[1:])
        command, bound, _ = make_app(arguments).parse_args(
            arguments, exit_on_error=False, print_error=False
        )
        _silence_libraries()
        result = command(*bound.args, **bound.kwargs)
        sys.stdout.flush()
    except (OperatorError, CycloptsError) as mistake:
        _say(" ".join(str(mistake).split()))
        sys.exit(2)
    except ValueError as error:
        mended = _of_arguments(error)
        if mended is None:
            raise
        _say(mended)
        sys.exit(2)
    except BanksideError as refusal:
        _say(f"{refusal.detail} ({refusal.code})")
        sys.exit(1)
    except KeyboardInterrupt:
        _say("Interrupted; what was begun may go on.")
        sys.exit(130)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
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
