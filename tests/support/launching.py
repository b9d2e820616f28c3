"""Starting the project's programs: each as a process of its own, that may be killed.

`launched` is how anybody starts one: a new interpreter. `forked` gets the same in a tenth of the time, on which most
of a test run would be spent otherwise. Programs that are forked hash passwords cheaply: a log-in would take as much
processor time as two starts of a service. They know arrays of PostgreSQL's types (`known_types`). A
gateway's processes are forked from their parent (`forked_children`).

| process | how many | forked from | ends with |
|---|---|---|---|
| trunk: has loaded what all programs use | one for the run | a new interpreter | the run |
| branch: has loaded one program | one for each program | the trunk | the trunk |
| nursery: forks the program when its worker asks | one for each program and worker | the branch | its worker |
| the program | | the nursery | the nursery |
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol

import argon2.profiles

from libs.runtime.processes import die_with_parent
from tests.support.forked_children import fork_copies_of
from tests.support.known_patterns import know_patterns
from tests.support.known_types import know_arrays
from tests.support.loaded_programs import load
from tests.support.run_server import connection_to

USED_BY_ALL = (
    "libs.runtime.process",
    "libs.handling.commands",
    "libs.handling.feeds",
    "libs.handling.outbox_relay",
    "libs.persistence.aes_gcm",
    "libs.providers.increase.client",
    "libs.providers.sandbox.http",
    "libs.cli.cli",
    "libs.cli.keys",
    "services.gateway.operator_commands",
    "aiohttp.web",
    "encodings.idna",
    "fpdf",
    "holidays.countries.united_states",
    "increase.resources",
    "phonenumbers.data.region_US",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "uvloop",
)
"""Nothing in which a service defines metrics: they would show in all the others."""
GRACE_SECONDS = 1.0
"""How long the trunk stays without a connection."""


@dataclass(frozen=True)
class Program:
    """A module to run, and what with."""

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    output: str
    """A file, to whose end stdout is written."""
    errors: str
    """Likewise, for stderr."""
    input: str = os.devnull
    """A file, from which stdin is read."""


class Running(Protocol):
    """A process that was started here."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code once it has ended, negative for a signal."""


Launch = Callable[[Program], Running]


def launched(program: Program, python: str | Path = sys.executable) -> Running:
    """A new interpreter."""
    with (
        Path(program.input).open("rb") as standard_input,
        Path(program.output).open("ab") as output,
        Path(program.errors).open("ab") as errors,
    ):
        return subprocess.Popen(
            [python, "-m", program.module, *program.arguments],
            env=dict(program.environment),
            cwd=program.folder,
            stdin=standard_input,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - only prctl and getppid
        )


def begin_loading(*modules: str) -> None:
    """Begin to load what all programs use, which takes a second, beside what else a test waits for.

    Args:
        modules: programs that are loaded as well. A program that is not loaded when it is forked stops the event loop
            of the test until it is.
    """
    _trunk()
    for module in modules:
        _nursery(module)


def forked(program: Program) -> Running:
    """A child of the program's nursery."""
    nursery = _nursery(program.module)
    return _Forked(nursery, nursery.ask(asdict(program)))


class _Forked:
    def __init__(self, nursery: _Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._nursery.ask(self.pid)
        return self._code


class _Nursery:
    """This process' connection to one that forks."""

    def __init__(self, connection: socket.socket) -> None:
        with connection:
            self._connection = connection.makefile("rwb")
        self._one_at_a_time = threading.Lock()

    def ask(self, request: Any) -> Any:
        with self._one_at_a_time:
            self._connection.write(json.dumps(request).encode() + b"\n")
            self._connection.flush()
            return json.loads(self._connection.readline())


@functools.cache
def _trunk() -> _Nursery:
    return _Nursery(connection_to("tests.support.launching"))


@functools.cache
def _nursery(module: str) -> _Nursery:
    """The one of this program and this worker."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_trunk().ask(module))
    return _Nursery(connection)


@dataclass(frozen=True)
class _Branch:
    """What a child of the trunk is to become."""

    module: str
    listener: socket.socket


def _be_trunk(listener: socket.socket) -> _Branch | None:
    """Answer each module with the address of its branch, until no worker is connected any more.

    Returns the branch, in the child that is to become it.
    """
    addresses: dict[str, str] = {}
    dies_with_us = die_with_parent(signal.SIGKILL)
    with contextlib.ExitStack() as opened:
        selector = opened.enter_context(selectors.DefaultSelector())
        selector.register(opened.enter_context(listener), selectors.EVENT_READ)
        while ready := selector.select(GRACE_SECONDS if len(selector.get_map()) == 1 else None):
            for key, _ in ready:
                if key.data is None:
                    connection = opened.enter_context(listener.accept()[0])
                    lines = opened.enter_context(connection.makefile("rb"))
                    selector.register(connection, selectors.EVENT_READ, (connection, lines))
                    continue
                connection, lines = key.data
                module = _asked_for(lines)
                if module is None:
                    selector.unregister(connection)
                    continue
                if module not in addresses:
                    branch = _Branch(module, socket.socket(socket.AF_UNIX))
                    branch.listener.bind(f"\0bankside-branch-{os.getpid()}-{module}")
                    branch.listener.listen()
                    if os.fork() == 0:
                        dies_with_us()
                        return branch
                    addresses[module] = branch.listener.getsockname().decode()
                    branch.listener.close()
                with contextlib.suppress(ConnectionError):
                    connection.sendall(json.dumps(addresses[module]).encode() + b"\n")
    return None


def _asked_for(lines: IO[bytes]) -> str | None:
    """The module that a worker asks for; None when the worker is gone, however it went."""
    try:
        line = lines.readline()
    except ConnectionError:
        return None
    return str(json.loads(line)) if line else None


def _be_branch(branch: _Branch) -> socket.socket:
    """Load the program, and fork a nursery for each worker that connects.

    Returns the connection, in the nursery.
    """
    load(branch.module)
    gc.freeze()
    dies_with_us = die_with_parent(signal.SIGKILL)
    with branch.listener:
        while True:
            connection, _ = branch.listener.accept()
            if os.fork() == 0:
                dies_with_us()
                return connection
            connection.close()


def _be_nursery(connection: socket.socket) -> Program | None:
    """Answer until the connection ends: a program with the pid of what became it, a pid with its exit code.

    Returns the program, in the child that is to become it.
    """
    codes: dict[int, int] = {}
    dies_with_us = die_with_parent(signal.SIGKILL)
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            request = json.loads(line)
            if isinstance(request, dict):
                if (pid := os.fork()) == 0:
                    dies_with_us()
                    return Program(**request)
                codes.pop(pid, None)  # of an earlier child with this number
                answer = json.dumps(pid)
            else:
                answer = json.dumps(_exit_code(request, codes))
            lines.write(answer.encode() + b"\n")
            lines.flush()
    return None


def _exit_code(pid: int, codes: dict[int, int]) -> int | None:
    if pid not in codes:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            codes[pid] = os.waitstatus_to_exitcode(status)
    return codes.get(pid)


def _become(program: Program) -> NoReturn:
    fork_copies_of(
        program.module,
        lambda env, cwd: _become(
            replace(program, arguments=(), environment=env, folder=str(cwd), input=os.devnull)
        ),
    )
    os.setsid()
    for descriptor, path, flags in (
        (0, program.input, os.O_RDONLY),
        (1, program.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        (2, program.errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(program.folder)
    os.environ.clear()
    os.environ.update(program.environment)
    sys.argv = [program.module, *program.arguments]
    code: object = 0
    try:
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:  # as an interpreter tells of it
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Without taking apart what was loaded, of which every page would be copied for it.
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    # Before it is imported by name. `tests/unit/gateway/test_passwords.py` has how passwords are hashed otherwise.
    argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
    know_arrays()
    know_patterns()
    for module in USED_BY_ALL:
        importlib.import_module(module)
    gc.freeze()  # a collection in a child would copy all of it
    if (branch := _be_trunk(socket.socket(fileno=int(sys.argv[1])))) is not None:
        program = _be_nursery(_be_branch(branch))
        if program is not None:
            _become(program)
    os._exit(0)  # as in `_become`
