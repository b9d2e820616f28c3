"""Ports for servers of tests.

Between the choice of a port and its use there are seconds, and many servers start at once: each worker of a test run,
and its keeper, has ports of its own, and gives each away once before it begins anew. The port after each is given to no
one: a gateway of two processes takes it for the second one's admin port.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections.abc import Iterator

from deploy.local.ports import drawn_ports, is_free, lasting_ports

_WORKERS = 16
"""At most; one more shares with the first."""
KEEPER = "keeper"
"""What a run's keeper has for the name of a worker: its ports are none of theirs."""


@functools.cache
def _own() -> range:
    """Those of this worker."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    share = _WORKERS if worker == KEEPER else int(worker.removeprefix("gw")) % _WORKERS
    # The local stack that a test starts draws its own.
    return range(lasting_ports().start, drawn_ports().start)[2 * share :: 2 * (_WORKERS + 1)]


@functools.cache
def _in_turn() -> Iterator[int]:
    return itertools.cycle(random.SystemRandom().sample(_own(), len(_own())))


def free_ports(count: int) -> list[int]:
    """Different ports that are free now, and that nobody else in this test run is given."""
    free = (port for port in itertools.islice(_in_turn(), len(_own())) if is_free(port))
    found = list(itertools.islice(free, count))
    if len(found) < count:
        raise OSError(f"no {count} free TCP ports")
    return found
