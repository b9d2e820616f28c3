"""The release before this one: its code beside this checkout, and its processes.

`deploy/previous-release` names its commit. The code is taken out of the history once, into `.tools/previous-release`.
It runs in the environment of this checkout where that has the packages which the release locks, else in one of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.infrastructure import migrate
from tests.support.launching import Program, Running, launched

ROOT = Path(__file__).resolve().parents[2]
NAMED_IN = ROOT / "deploy" / "previous-release"
KEPT = ROOT / ".tools" / "previous-release"
UV = ROOT / ".tools" / "uv" / "bin" / "uv"
TAKEN = ("libs", "services", "pyproject.toml", "uv.lock")
SECONDS = 300.0
"""For each program that makes its folder: packages may have to be downloaded."""


class NotHere(Exception):
    """The previous release cannot be had in this checkout: why, and what helps."""


@dataclass(frozen=True)
class PreviousRelease:
    commit: str
    folder: Path
    python: Path

    def launched(self, program: Program) -> Running:
        """The program as that release has it, in a new interpreter."""
        return launched(replace(program, folder=str(self.folder)), self.python)

    def migrate(self, database_urls: Mapping[str, str]) -> None:
        """Bring the database to the revisions of that release."""
        migrate(database_urls, python=self.python, folder=self.folder)


def previous_release() -> PreviousRelease:
    """Raises NotHere."""
    commit = named_commit(NAMED_IN.read_text())
    folder = KEPT / commit
    if not folder.exists():
        take_out(commit, folder)
    return PreviousRelease(commit, folder, _python(folder))


def named_commit(text: str) -> str:
    """The one line that is no comment."""
    (commit,) = [line for line in text.splitlines() if line and not line.startswith("#")]
    return commit


def take_out(commit: str, folder: Path) -> None:
    if not _has(commit):
        raise NotHere(
            f"This checkout has no commit {commit}, which {NAMED_IN.relative_to(ROOT)} names as the previous release:"
            f" it is shallow or was exported. `git fetch origin {commit}` gets it."
        )
    shutil.rmtree(KEPT, ignore_errors=True)  # of an earlier one
    KEPT.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as made:
        archive = Path(made, "archive.tar")
        _run("git", "archive", "--output", archive, commit, *TAKEN)
        fresh = Path(made, "release")
        fresh.mkdir()
        # Not by shutil, whose filter of names came with Python 3.11.4.
        _run("tar", "--extract", "--file", archive, "--directory", fresh)
        # Services that start side by side would each compile the same modules.
        _run(sys.executable, "-m", "compileall", "-q", fresh)
        fresh.rename(folder)


def _has(commit: str) -> bool:
    if shutil.which("git") is None:
        return False
    done = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _python(folder: Path) -> Path:
    """Of an environment with the packages of that release."""
    if (folder / "uv.lock").read_bytes() == (ROOT / "uv.lock").read_bytes():
        return Path(sys.executable)
    if not UV.exists():
        raise NotHere("There is no uv in .tools: remove .venv, and `make environment` makes both.")
    if _packages(folder, "--no-default-groups") <= _packages(ROOT, "--all-groups"):
        return Path(sys.executable)
    _run(
        *(UV, "sync", "--frozen", "--all-extras", "--no-default-groups", "--no-install-project"),
        *("--python", sys.executable),
        cwd=folder,
    )
    return folder / ".venv" / "bin" / "python"


def _packages(folder: Path, groups: str) -> set[str]:
    """Those of the services and of the groups, each with its version."""
    shown = ("--quiet", "--no-header", "--no-annotate", "--no-hashes", "--no-emit-project")
    exported = _run(UV, "export", "--frozen", "--all-extras", groups, *shown, cwd=folder)
    return set(exported.splitlines())


def _run(*command: str | Path, cwd: Path = ROOT) -> str:
    # uv's own variable would name the environment of this checkout.
    environment = {
        k: v for k, v in os.environ.items() if k not in {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"}
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout
