"""A child that is forked has what a new interpreter would have, and nothing else of its parent's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from libs.runtime.supervision import ChildSpec, Supervisor
from tests.support.forked_children import fork_copies_of
from tests.support.waiting import eventually

MODULE = "tests.a_program"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What the program wrote about itself, before it waits for its end."""
    monkeypatch.setattr(asyncio, "create_subprocess_exec", asyncio.create_subprocess_exec)

    def become(environment: Mapping[str, str], folder: Path) -> NoReturn:
        itself = {
            "environment": dict(environment),
            "folder": str(folder),
            "leads": os.getsid(0) == os.getpid(),
            "open": [fd for fd in range(3, 1000) if Path(f"/proc/self/fd/{fd}").exists()],
            "handled": [int(signum) for signum in signal.valid_signals() if _is_handled(signum)],
        }
        (tmp_path / "new").write_text(json.dumps(itself))
        (tmp_path / "new").rename(tmp_path / "told")
        signal.pause()
        os._exit(0)

    def lead(environment: Mapping[str, str], folder: Path) -> NoReturn:
        os.setsid()
        become(environment, folder)

    fork_copies_of(MODULE, lead)
    return tmp_path / "told"


def _is_handled(signum: int) -> bool:
    return signum != signal.SIGINT and callable(signal.getsignal(signum))


async def test_a_supervised_child_is_given_all_that_it_has_and_ends_by_its_signal(
    told: Path, tmp_path: Path
) -> None:
    command = (sys.executable, "-m", MODULE)
    changes: list[str] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
    with socket.socket() as given, socket.socket():
        spec = ChildSpec("forked", command, {"A": "b"}, cwd=tmp_path, pass_fds=(given.fileno(),))
        async with Supervisor(lambda change: changes.append(str(change))) as supervisor:
            supervisor.start(spec)
            itself = await eventually("it has told", lambda: _read(told))
            told.unlink()
            supervisor.kill("forked", signal.SIGKILL)
            again = await eventually("it was started again", lambda: _read(told))
            await supervisor.stop("forked")

        assert itself == again
        assert itself == {
            "environment": {"A": "b"},
            "folder": str(tmp_path),
            "leads": True,
            "open": [given.fileno()],
            "handled": [],
        }
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    assert [line.partition(" (")[0] for line in changes] == [
        "forked: starting",
        "forked: ready",
        "forked: died",
        "forked: starting",
        "forked: ready",
        "forked: stopped",
    ]
    assert "signal SIGKILL" in changes[2]


async def test_another_command_is_a_new_interpreter(told: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "print('new')"), stdout=asyncio.subprocess.PIPE
    )

    output, _ = await process.communicate()

    assert (output, process.returncode) == (b"new\n", 0)
    assert not told.exists()


async def _read(told: Path) -> Any:
    return json.loads(told.read_text()) if told.exists() else None
