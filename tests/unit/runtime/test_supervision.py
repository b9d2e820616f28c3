"""The supervisor, with real processes."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from libs.backoff import Backoff
from libs.runtime import child_logs, supervision
from libs.runtime.processes import ProcessIdentity
from libs.runtime.supervision import Change, ChildSpec, NotReady, ReadyCheck, Supervisor
from libs.runtime.supervision_state import ChildState, SupervisorStatus, end_leftovers
from tests.support.pace import pace

SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""
SLOW_TO_END = """
import signal, sys, time
def end(*_):
    print("asked to end", flush=True)
    time.sleep(0.5)
    print("ended", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("begun", flush=True)
time.sleep(60)
"""


async def until(condition: Callable[[], bool], timeout_seconds: float = 10) -> None:
    async with asyncio.timeout(timeout_seconds * pace()):
        while not condition():
            await asyncio.sleep(0.01)


def sleeper(name: str = "sleeper", ready: ReadyCheck | None = None) -> ChildSpec:
    return ChildSpec(name, SLEEPER, env={}, ready=ready)


async def test_a_killed_child_is_started_again_and_the_lines_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervision, "RESTARTS", Backoff(0.001, 30.0))
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(sleeper())
        await supervisor.until_ready(["sleeper"], timeout_seconds=10)
        first = supervisor.children["sleeper"].identity

        supervisor.kill("sleeper")
        await until(lambda: ChildState.DIED in [change.state for change in changes])
        await supervisor.until_ready(["sleeper"], timeout_seconds=10)

        assert supervisor.children["sleeper"].identity != first
        assert supervisor.children["sleeper"].restarts == 1
    assert [change.state for change in changes] == [
        ChildState.STARTING,
        ChildState.READY,
        ChildState.DIED,
        ChildState.STARTING,
        ChildState.READY,
        ChildState.STOPPED,
    ]
    assert str(changes[2]) == "sleeper: died (signal SIGKILL, restarting at once)"


def restarted(supervisor: Supervisor, times: int) -> bool:
    return supervisor.children["sleeper"].restarts == times


async def test_kills_do_not_lengthen_the_pause_and_crashes_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervision, "RESTARTS", Backoff(0.001, 30.0))
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(sleeper())
        for number, signum in enumerate([signal.SIGKILL] * 3 + [signal.SIGABRT] * 2, start=1):
            await supervisor.until_ready(["sleeper"], timeout_seconds=10)
            supervisor.kill("sleeper", signum)
            await until(partial(restarted, supervisor, number))

    details = [change.detail for change in changes if change.state is ChildState.DIED]
    assert details == [
        *["signal SIGKILL, restarting at once"] * 3,
        "signal SIGABRT, restarting in 0.001 s",
        "signal SIGABRT, restarting in 0.002 s",
    ]


async def test_a_child_that_is_killed_before_it_is_ready_is_started_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never() -> bool:
        return False

    monkeypatch.setattr(supervision, "RESTARTS", Backoff(0.001, 30.0))
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(sleeper(ready=never))
        await until(lambda: supervisor.children["sleeper"].identity is not None)
        supervisor.kill("sleeper")
        await until(lambda: supervisor.children["sleeper"].restarts == 1)

    details = [change.detail for change in changes if change.state is ChildState.DIED]
    assert details == ["signal SIGKILL, restarting in 0.001 s"]


@pytest.mark.parametrize(
    ("longest_seconds", "pauses"),
    [(math.inf, (0.02, 0.04, 0.05, 0.05)), (0.03, (0.02, 0.03, 0.03, 0.03))],
)
async def test_the_pause_before_a_restart_doubles_up_to_its_limit(
    longest_seconds: float, pauses: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "RESTARTS", Backoff(0.02, 0.05))
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        false = ChildSpec("false", ("/bin/false",), env={}, longest_pause_seconds=longest_seconds)
        supervisor.start(false)
        await until(lambda: sum(change.state is ChildState.DIED for change in changes) == 4)

    details = [change.detail for change in changes if change.state is ChildState.DIED]
    assert details == [f"exit code 1, restarting in {pause} s" for pause in pauses]


async def test_a_child_that_lived_long_enough_begins_with_the_short_pause_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervision, "RESTARTS", Backoff(0.02, 30.0))
    monkeypatch.setattr(supervision, "STABLE_SECONDS", 0.0)
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(ChildSpec("false", ("/bin/false",), env={}))
        await until(lambda: sum(change.state is ChildState.DIED for change in changes) == 3)

    details = {change.detail for change in changes if change.state is ChildState.DIED}
    assert details == {"exit code 1, restarting in 0.02 s"}


async def test_readiness_is_watched_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "WATCHING_POLL_SECONDS", 0.02)
    answers = {"ready": False}

    async def check() -> bool:
        if not answers["ready"]:
            raise ConnectionRefusedError
        return True

    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(sleeper(ready=check))
        with pytest.raises(NotReady) as refused:
            await supervisor.until_ready(["sleeper"], timeout_seconds=0.3)
        answers["ready"] = True
        await supervisor.until_ready(["sleeper"], timeout_seconds=5)
        answers["ready"] = False
        await until(lambda: supervisor.children["sleeper"].state is ChildState.NOT_READY)

    assert refused.value.children == ["sleeper"]


async def test_children_stop_in_reverse_order_and_one_that_ignores_sigterm_is_killed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "deaf.log"
    changes: list[Change] = []

    async def is_deaf() -> bool:
        return "deaf" in log.read_text()

    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(sleeper("first"))
        supervisor.start(
            ChildSpec(
                "second",
                (sys.executable, "-c", DEAF),
                env={},
                ready=is_deaf,
                log_path=log,
                stop_seconds=0.2,
            )
        )
        await supervisor.until_ready(["first", "second"], timeout_seconds=10)

    stopped = [str(change) for change in changes if change.state is ChildState.STOPPED]
    assert stopped == [
        "second: stopped (killed: still running 0.2 s after SIGTERM)",
        "first: stopped",
    ]


async def test_a_second_stop_waits_for_the_orderly_end_that_the_first_one_began(
    tmp_path: Path,
) -> None:
    log = tmp_path / "slow.log"
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(ChildSpec("slow", (sys.executable, "-c", SLOW_TO_END), {}, log_path=log))
        await until(lambda: log.exists() and "begun" in log.read_text())
        first = asyncio.create_task(supervisor.stop("slow"))
        await until(lambda: "asked to end" in log.read_text())
        first.cancel()  # as one who replaces children and is told to stop
        await asyncio.wait({first})

        await supervisor.stop("slow")

        assert "ended" in log.read_text()
    assert changes[-1].state is ChildState.STOPPED


async def test_what_a_child_prints_goes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "echo.log"
    command = ("/bin/sh", "-c", "echo out; echo err >&2; exec sleep 60")

    async with Supervisor() as supervisor:
        supervisor.start(ChildSpec("echo", command, env={}, log_path=log))
        await until(lambda: log.exists() and log.read_text() == "out\nerr\n")


async def test_a_log_that_grows_too_large_begins_anew_while_its_child_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_logs, "LARGEST_BYTES", 10_000)
    monkeypatch.setattr(child_logs, "LOOK_EVERY_SECONDS", 0.01)
    log, full = tmp_path / "talk.log", tmp_path / "talk.log.1"
    command = ("/bin/sh", "-c", "while :; do echo 0123456789; done")

    async with Supervisor() as supervisor:
        supervisor.start(ChildSpec("talk", command, env={}, log_path=log))
        await until(full.exists)
        first = full.stat().st_ino, full.stat().st_mtime_ns
        await until(lambda: (full.stat().st_ino, full.stat().st_mtime_ns) != first)

    assert full.read_bytes().startswith(b"0123456789\n")
    assert log.read_bytes()[:1] != b"\0"


async def test_a_command_that_does_not_exist_is_one_line_and_is_tried_again() -> None:
    changes: list[Change] = []
    async with Supervisor(report=changes.append) as supervisor:
        supervisor.start(ChildSpec("ghost", ("/does/not/exist",), env={}))
        await until(lambda: bool(changes))

    assert str(changes[0]) == (
        "ghost: died (cannot start: No such file or directory, restarting in 0.5 s)"
    )


async def test_an_error_of_the_body_stops_the_children_and_goes_on_as_it_is() -> None:
    changes: list[Change] = []

    with pytest.raises(ZeroDivisionError):
        async with Supervisor(report=changes.append) as supervisor:
            supervisor.start(sleeper())
            await supervisor.until_ready(["sleeper"], timeout_seconds=10)
            raise ZeroDivisionError

    assert changes[-1].state is ChildState.STOPPED


async def test_a_full_disk_ends_no_child_and_their_state_is_written_once_there_is_room(
    tmp_path: Path,
) -> None:
    state, full = tmp_path / "state.json", tmp_path / "state.new"

    def report(_: Change) -> None:
        if full.is_symlink():
            raise OSError(errno.ENOSPC, "No space left on device")

    async with Supervisor(report=report, state_path=state) as supervisor:
        for name in ("first", "second"):
            supervisor.start(sleeper(name))
        await supervisor.until_ready(["first", "second"], timeout_seconds=10)
        full.symlink_to("/dev/full")
        supervisor.kill("first")
        await until(lambda: supervisor.children["first"].restarts == 1)
        await until(supervisor.children["first"].ready.is_set)
        second = supervisor.children["second"].restarts
        full.unlink()
        supervisor.kill("second")
        await until(lambda: supervisor.children["second"].restarts == 1)
        status = SupervisorStatus.read(state)

    assert second == 0
    assert status is not None
    assert {child.name for child in status.children} == {"first", "second"}


def test_a_log_that_there_is_no_room_to_copy_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_logs, "LARGEST_BYTES", 10)
    log, older = tmp_path / "service.log", tmp_path / "service.log.1"
    log.write_text("a line of a log\n")
    older.symlink_to("/dev/full")

    child_logs.cut(log)

    assert log.read_text() == ""
    assert not older.exists()


SUPERVISE_AND_WAIT = """
import asyncio, signal, sys
from pathlib import Path
from libs.runtime.supervision import ChildSpec, Supervisor

async def main():
    state = Path(sys.argv[1])
    async with Supervisor(state_path=state) as supervisor:
        command = (sys.executable, "-c", "import time; time.sleep(60)")
        orphan_signal = signal.Signals[sys.argv[2]]
        log = state.with_suffix(".log")  # or it would hold the pipe that the test reads
        supervisor.start(
            ChildSpec("sleeper", command, env={}, log_path=log, orphan_signal=orphan_signal)
        )
        await supervisor.until_ready(["sleeper"], 10)
        print("up", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def child_of_a_killed_supervisor(state: Path, orphan_signal: str) -> ProcessIdentity:
    """Supervise a sleeper in another process, kill that with -9, return the sleeper."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SUPERVISE_AND_WAIT, str(state), orphan_signal),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    status = SupervisorStatus.read(state)
    process.kill()
    await process.wait()
    assert status is not None
    child = status.children[0].process
    assert child is not None
    return child


async def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    orphan = await child_of_a_killed_supervisor(tmp_path / "state.json", "SIGKILL")

    await until(lambda: not orphan.is_running())


async def test_what_outlived_a_killed_supervisor_is_ended_by_its_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    survivor = await child_of_a_killed_supervisor(state, "SIGCONT")
    assert survivor.is_running()

    ended = await asyncio.to_thread(end_leftovers, state)

    assert ended == ["sleeper"]
    assert not survivor.is_running()
    assert not state.exists()


def test_a_reused_pid_is_not_mistaken_for_the_process_that_had_it() -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None

    assert own.is_running()
    assert not ProcessIdentity(own.pid, own.started_at - 1).is_running()
