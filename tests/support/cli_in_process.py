"""`bankside` in this process, with another one to put its operator's questions to."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TextIO
from unittest.mock import patch

from libs.cli import audit, cli
from libs.client import operator_client
from tests.support.command_line import Finished

Operating = Callable[[str | None], AbstractAsyncContextManager[Any]]
"""In place of `operator_client.operating`."""


def run_in_process(
    operating: Operating, arguments: tuple[str, ...], *, types: str | None
) -> Finished:
    """Run the command to its end.

    Args:
        types: what is typed where it asks; None: there is no terminal.
    """
    out, errors, status = _OfThisThread(sys.stdout), _OfThisThread(sys.stderr), 0
    standard_input = io.StringIO("" if types is None else f"{types}\n")
    standard_input.isatty = lambda: types is not None  # type: ignore[method-assign]
    with (
        patch.object(operator_client, "operating", operating),
        patch.object(audit, "operating", operating),
        patch.object(cli, "_silence_libraries", lambda: None),
        patch.object(cli, "load_stack_environment", lambda: None),
        patch.object(sys, "argv", ["bankside", *arguments]),
        patch.object(sys, "stdin", standard_input),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0
    return Finished(status, out.getvalue(), errors.getvalue())


class _OfThisThread(io.StringIO):
    """What the thread writes that made it; of others, which may log meanwhile, it is passed on."""

    def __init__(self, other: TextIO) -> None:
        super().__init__()
        self._other = other
        self._thread = threading.get_ident()

    def write(self, text: str, /) -> int:
        if threading.get_ident() == self._thread:
            return super().write(text)
        return self._other.write(text)
