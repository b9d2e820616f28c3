"""Which interpreter a new virtual environment gets."""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.local.environment import new_python


def fake_interpreter(folder: Path, exit_code: int) -> Path:
    """A program that says, by its exit code, whether it is new enough."""
    interpreter = folder / "python3"
    interpreter.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    interpreter.chmod(0o755)
    return interpreter


def test_the_systems_python_is_taken_when_nobody_named_another(tmp_path: Path) -> None:
    system = fake_interpreter(tmp_path, 0)

    assert new_python(prefer_system=True, system=system) == system


def test_a_python_that_was_named_is_the_one(tmp_path: Path) -> None:
    system = fake_interpreter(tmp_path, 0)

    assert new_python(prefer_system=False, system=system) == Path(sys.executable)


def test_a_systems_python_that_is_too_old_is_not_taken(tmp_path: Path) -> None:
    system = fake_interpreter(tmp_path, 1)

    assert new_python(prefer_system=True, system=system) == Path(sys.executable)


def test_a_system_without_python_is_no_mistake(tmp_path: Path) -> None:
    missing = tmp_path / "python3"

    assert new_python(prefer_system=True, system=missing) == Path(sys.executable)
