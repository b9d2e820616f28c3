"""A supervisor of child processes: starts, watches readiness, restarts what dies, stops in reverse order.

    async with Supervisor(report=print_line, state_path=path) as supervisor:
        supervisor.start(ChildSpec("gateway", (sys.executable, "-m", "services.gateway"), env=env))
        await supervisor.until_ready(["gateway"], timeout_seconds=30)
        await stop.wait()

A child that was ready and is killed by a signal from outside is started again at once. One that fails by itself is
started again after a pause that doubles from 0.5 s to 30 s, or to the child's own limit, and begins anew once the child
has lived for half a minute.
Children do not outlive the supervisor, even when it is killed with -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from libs.backoff import Backoff
from libs.runtime.child_logs import keep_bounded, open_log
from libs.runtime.processes import ProcessIdentity, die_with_parent
from libs.runtime.supervision_state import ChildState, ChildStatus, SupervisorStatus

RESTARTS = Backoff(first_seconds=0.5, longest_seconds=30.0)
STABLE_SECONDS = 30.0
KILLS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that others send; a process that fails by itself ends by an exit code, or by SIGSEGV, SIGABRT and so on."""
STARTING_POLL_SECONDS = 0.1
WATCHING_POLL_SECONDS = 2.0

ReadyCheck = Callable[[], Awaitable[bool]]
"""Answers whether the child can work, within seconds. Raising OSError or TimeoutError means no."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run and how to treat it. `env` is the child's whole environment."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    ready: ReadyCheck | None = None
    """None: ready as soon as it runs."""
    watch: bool = True
    """Ask `ready` again and again after the first yes, to report when it turns."""
    log_path: Path | None = None
    """Where its output is appended, kept within bounds; None: the supervisor's own output."""
    cwd: Path | None = None
    pass_fds: tuple[int, ...] = ()
    """Descriptors that it inherits, under the same numbers."""
    user: int | None = None
    group: int | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 20.0
    """Patience between `stop_signal` and SIGKILL."""
    longest_pause_seconds: float = math.inf
    """Before it is started again, where that is less than the usual limit."""
    orphan_signal: signal.Signals = signal.SIGKILL
    """What it gets when the supervisor dies without having stopped it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a child's state; `str()` is the line to show."""

    child: str
    state: ChildState
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.child}: {self.state.value}{f' ({self.detail})' if self.detail else ''}"


class NotReady(Exception):
    """Some children were not ready in time."""

    def __init__(self, children: list[str], timeout_seconds: float) -> None:
        super().__init__(f"not ready within {timeout_seconds:g} s: {', '.join(children)}")
        self.children = children


@dataclass(frozen=True, slots=True)
class _Ending:
    cause: str
    was_killed: bool
    """By a signal from outside, after it was ready: it did not fail by itself."""


class Child:
    """One supervised process, over all its lives."""

    def __init__(self, spec: ChildSpec, changed: Callable[[Change], None]) -> None:
        self.spec = spec
        self.state = ChildState.STOPPED
        self.restarts = 0
        self.identity: ProcessIdentity | None = None
        self.ready = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._changed = changed
        self._was_ready = False

    def _turn(self, state: ChildState, detail: str = "") -> None:
        self.state = state
        self._was_ready |= state is ChildState.READY
        (self.ready.set if state is ChildState.READY else self.ready.clear)()
        self._changed(Change(self.spec.name, state, detail))

    async def run(self) -> None:
        """Keep it running until cancelled; then stop it."""
        failures = 0
        while True:
            born = time.monotonic()
            ending = await self._live()
            lived_seconds = time.monotonic() - born
            was_killed = ending.was_killed and lived_seconds >= RESTARTS.first_seconds
            if was_killed or lived_seconds >= STABLE_SECONDS:
                failures = 0
            if not was_killed:
                failures += 1
            usual = RESTARTS.pause_seconds(failures) if failures else 0.0
            pause = min(usual, self.spec.longest_pause_seconds)
            when = f"in {pause:g} s" if pause else "at once"
            self._turn(ChildState.DIED, f"{ending.cause}, restarting {when}")
            try:
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                self._turn(ChildState.STOPPED)
                raise
            self.restarts += 1

    async def _live(self) -> _Ending:
        """From start to death. Cancelled: stops the process first."""
        self._was_ready = False
        try:
            process = await self._spawn()
        except OSError as error:
            return _Ending(f"cannot start: {error.strerror}", was_killed=False)
        self.identity = ProcessIdentity.of(process.pid)
        self._turn(ChildState.STARTING, f"pid {process.pid}")
        watch = asyncio.create_task(self._watch_readiness(), name=f"readiness:{self.spec.name}")
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await self._stop(process)
            raise
        finally:
            watch.cancel()
            await asyncio.wait({watch})
            self.identity = None
        _kill_group(process.pid)
        if code >= 0:
            return _Ending(f"exit code {code}", was_killed=False)
        signum = signal.Signals(-code)
        return _Ending(f"signal {signum.name}", was_killed=signum in KILLS and self._was_ready)

    async def _spawn(self) -> asyncio.subprocess.Process:
        spec = self.spec
        with open_log(spec.log_path) as output:
            options: dict[str, Any] = (
                {"stdout": output, "stderr": subprocess.STDOUT} if output else {}
            )
            if spec.user is not None:
                options |= {"user": spec.user, "group": spec.group, "extra_groups": []}
            return await asyncio.create_subprocess_exec(
                *spec.command,
                env=dict(spec.env),
                cwd=spec.cwd,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent(spec.orphan_signal),
                pass_fds=spec.pass_fds,
                **options,
            )

    async def _watch_readiness(self) -> None:
        while True:
            try:
                is_ready = self.spec.ready is None or await self.spec.ready()
            except (OSError, TimeoutError):
                is_ready = False
            if is_ready and self.state is not ChildState.READY:
                self._turn(ChildState.READY)
            elif not is_ready and self.state is ChildState.READY:
                self._turn(ChildState.NOT_READY)
            if is_ready and (self.spec.ready is None or not self.spec.watch):
                return
            await asyncio.sleep(WATCHING_POLL_SECONDS if is_ready else STARTING_POLL_SECONDS)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        spec = self.spec
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(spec.stop_signal)
        # Not asyncio.timeout: in a task that is being cancelled it times out as CancelledError before 3.11.3.
        ended = asyncio.create_task(process.wait(), name=f"end:{spec.name}")
        await asyncio.wait({ended}, timeout=spec.stop_seconds)
        in_time = ended.done()
        _kill_group(process.pid)
        await ended
        late = f"killed: still running {spec.stop_seconds:g} s after {spec.stop_signal.name}"
        self._turn(ChildState.STOPPED, "" if in_time else late)


def _kill_group(leader: int) -> None:
    """End what is left of a child: it leads a process group that its own children share."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


class Supervisor:
    """Owns the children. Leaving the `async with` stops them, the last started first.

    `report` gets every change of state. `state_path`, when given, holds what runs now, see `supervision_state`.
    """

    def __init__(
        self, report: Callable[[Change], None] | None = None, state_path: Path | None = None
    ) -> None:
        self.children: dict[str, Child] = {}
        self._report = report
        self._state_path = state_path
        self._tasks = asyncio.TaskGroup()
        self._log_keeper: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._log_keeper = self._tasks.create_task(keep_bounded(self._logs), name="child logs")
        if self._state_path:
            self.status().write(self._state_path)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for name in reversed(list(self.children)):
                await self.stop(name)
        finally:
            self._log_keeper.cancel()
            if self._state_path:
                self._state_path.unlink(missing_ok=True)
            # An error of the body goes on as it is; the group only has to know when it cancelled the body itself.
            cancelled = isinstance(exc, asyncio.CancelledError)
            await self._tasks.__aexit__(*((exc_type, exc, traceback) if cancelled else (None,) * 3))

    def start(self, spec: ChildSpec) -> None:
        """Begin to keep `spec` running. Its name must be free."""
        if spec.name in self.children:
            raise ValueError(f"{spec.name} is supervised already")
        child = Child(spec, self._on_change)
        self.children[spec.name] = child
        child.task = self._tasks.create_task(child.run(), name=f"child:{spec.name}")

    async def stop(self, name: str) -> None:
        """Stop one child for good and forget it."""
        child = self.children[name]
        assert child.task is not None
        if not child.task.cancelling():
            # A second request would interrupt the orderly end that the first one began.
            child.task.cancel()
        await asyncio.wait({child.task})
        self.children.pop(name, None)
        self._write_state()

    def kill(self, name: str, signum: signal.Signals = signal.SIGKILL) -> None:
        """Signal the process of a child, as an accident would. It is started again when it dies of it."""
        identity = self.children[name].identity
        if identity is not None and identity.is_running():
            os.kill(identity.pid, signum)

    async def until_ready(self, names: Iterable[str], timeout_seconds: float) -> None:
        """Return when all of them are ready. Raises NotReady."""
        children = [self.children[name] for name in names]
        try:
            async with asyncio.timeout(timeout_seconds):
                for child in children:
                    await child.ready.wait()
        except TimeoutError:
            late = [child.spec.name for child in children if not child.ready.is_set()]
            raise NotReady(late, timeout_seconds) from None

    def status(self) -> SupervisorStatus:
        own = ProcessIdentity.of(os.getpid())
        assert own is not None, "this process runs"
        return SupervisorStatus(
            own,
            tuple(
                ChildStatus(child.spec.name, child.state, child.restarts, child.identity)
                for child in self.children.values()
            ),
        )

    def _logs(self) -> list[Path]:
        specs = [child.spec for child in self.children.values()]
        return [spec.log_path for spec in specs if spec.log_path is not None]

    def _on_change(self, change: Change) -> None:
        self._write_state()
        if self._report:
            with contextlib.suppress(OSError):  # as below
                self._report(change)

    def _write_state(self) -> None:
        if self._state_path:
            # The children go on while the disk is full; the next change is written again.
            with contextlib.suppress(OSError):
                self.status().write(self._state_path)
