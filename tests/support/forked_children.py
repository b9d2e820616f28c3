"""A supervisor's children that run its own program, forked from it: a new interpreter would take a second of processor
time to load what is loaded here.

As with a new interpreter, the child has the environment and the descriptors that it is given and no others, leads a
session, and has no handler of a signal. Any other command is started as usual.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

FIRST_AFTER_STANDARD = 3

Become = Callable[[Mapping[str, str], Path], NoReturn]
"""Runs the program from its beginning with this environment in this folder, as the leader of a session."""


def fork_copies_of(module: str, become: Become) -> None:
    """From now on, where this process starts `python -m MODULE`."""
    start = asyncio.create_subprocess_exec

    async def fork_or_start(*command: str, **options: Any) -> Any:
        if command == (sys.executable, "-m", module):
            return _forked(become, **options)
        return await start(*command, **options)

    replaced: Any = fork_or_start
    asyncio.create_subprocess_exec = replaced


class ForkedChild:
    """What a Supervisor uses of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def send_signal(self, signum: signal.Signals) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, signum)

    async def wait(self) -> int:
        if self.returncode is None:
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            descriptor = os.pidfd_open(self.pid)
            loop.add_reader(descriptor, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        if self.returncode is None:
            _, status = os.waitpid(self.pid, os.WNOHANG)  # noqa: ASYNC222 - it has ended
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _forked(
    become: Become,
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    stdin: int,
    start_new_session: bool,
    preexec_fn: Callable[[], None],
    pass_fds: Collection[int],
) -> ForkedChild:
    """Raises TypeError for an option that a forked child would not have."""
    assert stdin == asyncio.subprocess.DEVNULL
    assert start_new_session
    # A signal to the child would otherwise be handled by what it has of its parent's event loop.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        try:
            _forget_handlers()
            _close_all_but(pass_fds)
            preexec_fn()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            contextvars.Context().run(become, env, cwd or Path.cwd())
        finally:
            os._exit(1)  # in any case: what called this is the parent's
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedChild(pid)


def _forget_handlers() -> None:
    """Signals that are ignored stay so."""
    signal.set_wakeup_fd(-1)
    for signum in signal.valid_signals():
        if callable(signal.getsignal(signum)):
            signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _close_all_but(descriptors: Collection[int]) -> None:
    lowest = FIRST_AFTER_STANDARD
    for descriptor in sorted(descriptors):
        os.closerange(lowest, descriptor)
        lowest = descriptor + 1
    os.closerange(lowest, os.sysconf("SC_OPEN_MAX"))
