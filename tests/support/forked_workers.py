"""Workers of a run, each forked from one process that has imported the tests.

A worker imports every test before its first one: 5 s of processor time, and twice as much where nothing is compiled
yet. The template does so once for all workers. What it imported, the workers find in `sys.modules`, so that they have
only the tests themselves to collect. A template that fails to import something leaves that to the workers, which report
it. Where the template ends before it has forked a worker, the stand-in becomes that worker.

| process | started by | ends with |
|---|---|---|
| template: has imported the tests | the run's pytest | the run's pytest |
| stand-in (`worker_stand_in.py`): the child that execnet starts, with a worker's pipes | execnet | its worker |
| worker | the template, when a stand-in connects | as one that execnet starts |

What a worker knows by its environment alone (PYTEST_XDIST_WORKER, PYTEST_XDIST_TESTRUNUID), the template does not know:
nothing that is computed at import may depend on it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import types
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from libs.runtime.processes import die_with_parent
from tests.support.api import operator_interface, public_interface

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("worker_stand_in.py")
LONGEST_CODE = 65_536
PIPES = 3
"""stdin, stdout and stderr."""


def fork_workers(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Have a template forked for each of the workers that execnet starts by `specs`."""
    python_path = filter(None, [os.environ.get("PYTHONPATH")])
    address = f"\0bankside-template-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        descriptor = str(listener.fileno())
        arguments = map(str, config.invocation_params.args)
        template = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked_workers", descriptor, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *python_path])},
            pass_fds=[listener.fileno()],
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - only prctl and getppid
        )

    def end() -> None:
        template.kill()
        template.wait()

    config.add_cleanup(end)
    # Without the project's packages and the site's, an interpreter starts in a hundredth of a second.
    stand_in = (sys.executable, "-I", "-S", str(STAND_IN), address.removeprefix("\0"))
    for spec in specs:
        spec.python = shlex.join(stand_in)


def _import_tests(arguments: Sequence[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as cache
    ):  # what this collects is not the last run of anything
        pytest.main([*arguments, "-n0", "--collect-only", "-qq", "-o", f"cache_dir={cache}"])


def _make_documents() -> None:
    """Make the documents of the interface, which take 0.4 s, where tests were imported that check answers by them."""
    if "tests.support.live" in sys.modules:
        with contextlib.suppress(Exception):  # each worker tells of it by its tests
            public_interface()
            operator_interface()
            gc.freeze()


def _be_template(listener: socket.socket) -> str:
    """Fork a worker for each stand-in that connects, until the run's pytest ends.

    Returns the code that the worker is to run, in the worker.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers that ended are not waited for here
    while True:
        connection, _ = listener.accept()
        code, pipes, _, _ = socket.recv_fds(connection, LONGEST_CODE, PIPES)
        if os.fork() == 0:
            listener.close()
            connection.send(b"\1")  # a stand-in without it becomes the worker itself
            connection.detach()  # its end, which the stand-in waits for, is that of the worker
            for descriptor, pipe in enumerate(pipes):
                os.dup2(pipe, descriptor)
                os.close(pipe)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return code.decode()
        connection.close()
        for pipe in pipes:
            os.close(pipe)


if __name__ == "__main__":
    # Ctrl-C is for the run's pytest, with which this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_tests(sys.argv[2:])
    _make_documents()
    code = _be_template(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["-c"]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(code, vars(main))
