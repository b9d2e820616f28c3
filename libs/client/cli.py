"""The `bankside` command line.

Commands are imported when they are called, so that the command starts quickly. Services add their operators' commands
under the entry point group `bankside.operator`: the name of the command, and a cyclopts App of that name.
"""

from __future__ import annotations

import logging
import sys
from importlib.metadata import entry_points, version

from cyclopts import App, CycloptsError

from libs.client.mistakes import OperatorMistake
from libs.client.settings import load_stack_environment

OPERATORS = "bankside.operator"


def make_app() -> App:
    app = App(
        name="bankside",
        help="Call a Bankside gateway and operate its stack. Settings are the BANKSIDE_* variables, else those of the "
        "stack that runs in this checkout.",
        version=lambda: version("bankside"),
    )
    app.command(
        "libs.client.call:call", name="call", help="Sign a request, send it, show what came back."
    )
    app.command(
        "libs.client.dead:app", name="dead", help="Look at dead letters and send them again."
    )
    for entry in sorted(entry_points(group=OPERATORS)):
        service = entry.value.split(".")[1]
        app.command(entry.value, name=entry.name, help=f"Operate the {service}: {entry.name}.")
    return app


def _silence_libraries() -> None:
    """What fails is told by the command, in a sentence; log lines of what it uses would stand between."""
    logging.getLogger().addHandler(logging.NullHandler())
    structlog = sys.modules.get("structlog")  # slow to import, so only if the command did
    if structlog is not None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def main() -> None:
    """Run the command; 0 done, 1 refused by the service, 2 a mistake that the person can put right."""
    try:
        load_stack_environment()
        command, bound, _ = make_app().parse_args(
            sys.argv[1:], exit_on_error=False, print_error=False
        )
        _silence_libraries()
        result = command(*bound.args, **bound.kwargs)
    except (OperatorMistake, CycloptsError) as mistake:
        print(f"bankside: {' '.join(str(mistake).split())}", file=sys.stderr)
        sys.exit(2)
    sys.exit(result if isinstance(result, int) else 0)
