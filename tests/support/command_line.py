"""Running `bankside` as it is typed: a process of its own, forked like the services (`launching`)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.launching import Launch, Program, forked
from tests.support.waiting import eventually

END_SECONDS = 30.0


class Finished(NamedTuple):
    status: int
    out: str
    err: str


async def run_bankside(
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    stdin: bytes = b"",
    output: str | None = None,
    launch: Launch = forked,
) -> Finished:
    """Run `bankside` to its end.

    Args:
        environment: all of its variables.
        output: a file that its output is written to, instead of being returned.
        folder: where it runs; an empty one by default, since in a checkout it reads the settings of its stack.
    """
    with tempfile.TemporaryDirectory() as empty:
        where = folder or Path(empty)
        return await run_program(
            "libs.cli",
            arguments,
            environment,
            folder=where,
            stdin=stdin,
            output=output,
            launch=launch,
        )


async def run_program(
    module: str,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    folder: Path,
    stdin: bytes = b"",
    output: str | None = None,
    launch: Launch = forked,
) -> Finished:
    """Likewise, `python -m MODULE` in a folder."""
    with tempfile.TemporaryDirectory() as files:
        written, errors, standard_input = (Path(files, name) for name in ("out", "err", "in"))
        written.touch()
        standard_input.write_bytes(stdin)
        process = launch(
            Program(
                module=module,
                arguments=arguments,
                environment=environment,
                folder=str(folder),
                output=output or str(written),
                errors=str(errors),
                input=str(standard_input),
            )
        )

        async def has_ended() -> bool:
            return process.poll() is not None

        await eventually(f"{module} {' '.join(arguments)} ends", has_ended, END_SECONDS)
        return Finished(process.poll() or 0, written.read_text(), errors.read_text())
