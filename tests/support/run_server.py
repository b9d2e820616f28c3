"""Processes of which a test run has one for all of its workers. The run's pytest starts them where it has workers;
without any, the first test that needs one does.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
import uuid

from tests.support.ports import KEEPER

CONNECT_SECONDS = 90.0
POLL_SECONDS = 0.05
RUN = "TEST_RUN_ID"
"""In the environment of every process of a run: its name, which the first of them gives it."""


def _run() -> str:
    if RUN not in os.environ:
        # A worker that named a run of its own would start servers of its own.
        assert "PYTEST_XDIST_WORKER" not in os.environ, "the run's pytest names it"
        os.environ[RUN] = uuid.uuid4().hex
    return os.environ[RUN]


def connection_to(module: str) -> socket.socket:
    """A connection to the run's process of this module, which is started unless it runs.

    `python -m <module> <descriptor>`: the descriptor is that of a socket that listens. The process ends by itself when
    no process is connected any more.
    """
    # A socket without a file, so that none is left behind.
    address = f"\0bankside-{_run()}-{module}"
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        _start_unless_it_runs(module, address)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
        except ConnectionRefusedError:  # another worker starts the process at this moment
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return connection


def _start_unless_it_runs(module: str, address: str) -> None:
    """In a session of its own: Ctrl-C at the terminal is for the tests, and the process cleans up after them."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return
            raise
        listener.listen()
        listener.set_inheritable(True)
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", module, str(listener.fileno())],
                os.environ | {"PYTEST_XDIST_WORKER": KEEPER},
                file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)],
                setsid=True,
            )
        finally:
            os.close(null)
