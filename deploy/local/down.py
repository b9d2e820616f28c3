"""`down` and `clean`: nothing of the stack runs any more, and nothing of it is left."""

from __future__ import annotations

import time

from deploy.local.state import LocalState, running
from libs.client.errors import OperatorError
from libs.runtime.processes import end_processes
from libs.runtime.supervision_state import end_leftovers

STOP_SECONDS = 110.0
"""Longer than all parts may take one after the other; what runs then is killed."""


def stop(state: LocalState) -> bool:
    """Stop everything; whether anything ran."""
    status = running(state)
    if status is not None:
        end_processes([status.process], patience_seconds=STOP_SECONDS)
    left = end_leftovers(state.supervisor)
    return status is not None or bool(left)


def down(state: LocalState) -> None:
    began = time.monotonic()
    if stop(state):
        print(
            f"Stopped, in {time.monotonic() - began:.1f} s. The data stays: `make up` goes on with it."
        )
    else:
        print("The stack was not running.")


def clean(state: LocalState) -> None:
    stop(state)
    try:
        state.delete()
    except OSError as error:
        raise OperatorError(f"{error.filename} cannot be removed: {error.strerror}.") from None
    print(f"Removed {state.folder}: the next `make up` begins with nothing.")
