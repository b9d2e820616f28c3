"""The servers of a run that was killed leave no files for long."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import servers_folder as module
from tests.support.servers_folder import servers_folder

KILLED = """
import os, signal, sys, tempfile
from pathlib import Path
from tests.support import servers_folder as module
module.MEMORY, tempfile.tempdir = Path(sys.argv[1]), sys.argv[2]
module._is_fit = lambda folder: True
with module.servers_folder() as folder:
    (folder / "data").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    disk = tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    return disk


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(module, "MEMORY", memory)
    monkeypatch.setattr(module, "_is_fit", lambda _: True)
    return memory


def test_a_folder_is_gone_after_its_use(memory: Path) -> None:
    with servers_folder() as folder:
        (folder / "data").write_text("x")
        assert folder.parent == memory

    assert list(memory.iterdir()) == []


@pytest.mark.parametrize("fits", [True, False])
def test_folders_of_killed_runs_are_removed_and_those_in_use_are_not(
    memory: Path, disk: Path, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(memory), str(disk)], check=False)
    left = {path for path in memory.iterdir() if path.is_dir()}
    monkeypatch.setattr(module, "_is_fit", lambda _: fits)

    with servers_folder() as first, servers_folder() as second:
        there = {path for base in (memory, disk) for path in base.iterdir() if path.is_dir()}

    assert killed.returncode == -signal.SIGKILL
    assert len(left) == 1
    assert there == {first, second}
    assert [*memory.iterdir(), *disk.iterdir()] == []


def test_what_cannot_be_a_lock_of_ours_hinders_nothing(memory: Path, tmp_path: Path) -> None:
    (memory / "bankside-servers-a.lock").mkdir()
    (memory / "bankside-servers-b.lock").symlink_to(tmp_path)
    others = set(memory.iterdir())

    with servers_folder() as folder:
        assert folder.is_dir()

    assert set(memory.iterdir()) == others


def test_without_room_in_memory_it_is_on_the_disk(
    disk: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module, "MEMORY", memory)
    monkeypatch.setattr(module, "NEEDED_BYTES", 1 << 62)
    monkeypatch.setattr("tempfile.tempdir", str(disk))

    with servers_folder() as folder:
        assert folder.parent == disk
