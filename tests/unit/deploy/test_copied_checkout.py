"""A stack belongs to one folder: a copy of the checkout leaves it alone, a checkout that was moved takes it along."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deploy.local.__main__ import run
from deploy.local.state import LocalState, Remembered
from libs.client.errors import OperatorError


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalState:
    """The state of a stack that was started, whose database would be in a folder of the test."""
    monkeypatch.setattr("deploy.local.state._SYSTEM_STATE", tmp_path / "databases")
    state = LocalState(tmp_path / "bankside" / ".local")
    state.root.mkdir()
    state.create()
    state.remember(Remembered.new())
    return state


def folder_of(state: LocalState) -> str:
    return str(json.loads((state.folder / "stack.json").read_text())["folder"])


@pytest.mark.parametrize("command", ["up", "down", "clean", "migrate"])
def test_a_copy_does_nothing_to_the_stack_of_the_checkout_it_was_copied_from(
    original: LocalState, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    begun: list[object] = []
    for name in ("up", "down", "clean"):
        monkeypatch.setattr(f"deploy.local.__main__.{name}", lambda *given: begun.append(given))
    copy = LocalState(original.root.with_name("copy") / ".local")
    shutil.copytree(original.root, copy.root)

    with pytest.raises(OperatorError, match="is a copy of") as raised:
        run(command, copy)

    assert str(original.root) in str(raised.value)
    assert f"remove {copy.folder}," in str(raised.value)
    assert not begun
    run("down", original)
    assert begun == [(original,)]


def test_a_checkout_that_was_moved_keeps_its_stack(original: LocalState) -> None:
    remembered = original.remembered()
    moved = LocalState(original.root.with_name("moved") / ".local")
    original.root.rename(moved.root)

    moved.claim()

    assert moved.remembered() == remembered
    assert folder_of(moved) == str(moved.folder)


def test_another_stack_where_the_checkout_was_before_is_no_hindrance(original: LocalState) -> None:
    moved = LocalState(original.root.with_name("moved") / ".local")
    original.root.rename(moved.root)
    original.root.mkdir()
    original.create()
    original.remember(Remembered.new())

    moved.claim()

    assert folder_of(moved) == str(moved.folder)


def test_the_same_folder_by_another_path_is_no_copy(original: LocalState) -> None:
    linked = original.root.with_name("linked")
    linked.symlink_to(original.root)

    LocalState(linked / ".local").claim()
    original.claim()


def test_the_stack_of_an_earlier_release_is_that_of_its_folder(original: LocalState) -> None:
    path = original.folder / "stack.json"
    stored = json.loads(path.read_text())
    del stored["folder"]
    path.write_text(json.dumps(stored))

    original.claim()

    assert json.loads(path.read_text()) == stored | {"folder": str(original.folder)}
