"""The servers of a run that was killed leave no files in memory for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import servers_folder as module
from tests.support.servers_folder import servers_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.support import servers_folder as module
module.MEMORY = Path(sys.argv[1])
module._is_fit = lambda _: True
with module.servers_folder() as folder:
    (folder / "data").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "MEMORY", tmp_path)
    monkeypatch.setattr(module, "_is_fit", lambda _: True)
    return tmp_path


def test_a_folder_is_gone_after_its_use(memory: Path) -> None:
    with servers_folder() as folder:
        (folder / "data").write_text("x")
        assert folder.parent == memory

    assert list(memory.iterdir()) == []


def test_folders_of_killed_runs_are_removed_and_those_in_use_are_not(memory: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(memory)], check=False)
    (left,) = memory.iterdir()

    with servers_folder() as first, servers_folder() as second:
        there = set(memory.iterdir())

    assert killed.returncode == -signal.SIGKILL
    assert there == {first, second}
    assert left not in there


def test_without_room_in_memory_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEEDED_BYTES", 1 << 62)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with servers_folder() as folder:
        assert folder.parent == tmp_path
        assert os.access(folder, os.W_OK)
