"""Each command's help has an example that the command takes."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from cyclopts import App

from libs.cli.cli import make_app

ID = str(UUID(int=7))


def commands(app: App, *path: str) -> Iterator[tuple[tuple[str, ...], Callable[..., Any]]]:
    for name in app:
        if name.startswith("-"):
            continue
        if (command := app[name].default_command) is None:
            yield from commands(app[name], *path, name)
        else:
            yield (*path, name), command


COMMANDS = dict(commands(make_app(["a command"])))


def examples(command: Callable[..., Any]) -> list[list[str]]:
    """The words of each "Such as `bankside …`", without what a shell does with the output."""
    text = " ".join((inspect.getdoc(command) or "").split())
    found = re.findall(r"(?:Such as|, or) `bankside ([^`]+?)(?: > [^`]+)?`", text)
    return [shlex.split(re.sub(r"\b[A-Z_]+_ID\b", ID, example)) for example in found]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_has_examples_that_the_command_takes(path: tuple[str, ...]) -> None:
    found = examples(COMMANDS[path])

    assert found
    for words in found:
        assert tuple(words[: len(path)]) == path
        command, _, _ = make_app(words).parse_args(words, exit_on_error=False, print_error=False)
        assert command is COMMANDS[path]
