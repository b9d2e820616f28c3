"""Processes of which a test run has one for all of its workers. The first worker that needs one starts it."""

from __future__ import annotations

import errno
import functools
import os
import socket
import sys
import time
import uuid

from tests.support.ports import KEEPER

CONNECT_SECONDS = 90.0
POLL_SECONDS = 0.05


@functools.cache
def _run() -> str:
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex


def connection_to(module: str) -> socket.socket:
    """A connection to the run's process of this module, which is started unless it runs.

    `python -m <module> <descriptor>`: the descriptor is that of a socket that listens. The process ends by itself when
    no worker is connected any more.
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
