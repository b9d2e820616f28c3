"""`make up` on a machine that has run it before: from nothing running to everything ready."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.local.environment import ENVIRONMENT, ROOT, STAMP
from deploy.local.services import OPERATOR_PORT_SETTING, SERVICES
from libs.client.errors import OperatorError
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, Series, limited
from tests.support.ports import free_ports

GOAL_SECONDS, FLOOR_SECONDS = 10.0, 13.8
LIMIT_SECONDS = 180.0
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "tests")
"""What a checkout does not come with, or the stack does not need; `.venv` is linked to."""


async def run(bench: Bench) -> list[Figure]:
    if not STAMP.exists():
        raise OperatorError(
            "The environment was not made by make: run the benchmarks with `make bench`."
        )
    with _checkout() as folder:
        try:
            await _make(folder, "up")
            seconds = tuple([await _warm_start(folder) for _ in range(bench.plan.rounds)])
        finally:
            await _make(folder, "clean")
    return [limited("start", Series(seconds, "s"), goal=GOAL_SECONDS, floor=FLOOR_SECONDS)]


async def _warm_start(folder: Path) -> float:
    await _make(folder, "down")
    began = time.perf_counter()
    await _make(folder, "up")
    return time.perf_counter() - began


@contextlib.contextmanager
def _checkout() -> Iterator[Path]:
    """A copy of this one with state of its own: no stack that runs here is touched."""
    with tempfile.TemporaryDirectory(prefix="bankside-bench-") as name:
        folder = Path(name) / "checkout"
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        (folder / ENVIRONMENT.name).symlink_to(ENVIRONMENT)
        yield folder


async def _make(folder: Path, target: str) -> None:
    public = [s.port_setting for s in SERVICES if s.public_port is not None]
    names = [*public, OPERATOR_PORT_SETTING]
    ports = {name: str(p) for name, p in zip(names, free_ports(len(names)), strict=True)}
    # Neither what make tells its own children nor the settings of a stack that runs here.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BANKSIDE_", "MAKE")) and name != "MFLAGS"
    }
    process = await asyncio.create_subprocess_exec(
        *("make", "--no-print-directory", "-C", str(folder), target),
        env=inherited | ports,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode != 0:
        raise OperatorError(f"`make {target}` failed: {output.decode(errors='replace')}")
