"""The output of a child process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.gateway.child_output import ChildOutput, NoOutput


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of the module that the child runs."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "child.py"


async def test_all_callers_get_the_output_of_one_child(module: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    module.write_text(f"open({str(runs)!r}, 'a').write('x'); print('a' * 1_000_000, end='')")
    output = ChildOutput("child")

    made = await asyncio.gather(output.read(), output.read())

    assert [*made, await output.read()] == [b"a" * 1_000_000] * 3
    assert runs.read_text() == "x"


async def test_a_child_that_failed_is_started_again_for_the_next_caller(module: Path) -> None:
    module.write_text("raise SystemExit(3)")
    output = ChildOutput("child")

    with pytest.raises(NoOutput, match="exit code 3"):
        await output.read()
    module.write_text("import sys; print(*sys.argv[1:], end='')")

    assert await ChildOutput("child", "one", "two").read() == b"one two"
    assert await output.read() == b""


async def test_a_child_that_cannot_be_started_is_started_again_for_the_next_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    output = ChildOutput("child")

    with pytest.raises(NoOutput, match="cannot start: No such file or directory"):
        await output.read()
    (tmp_path / "python").symlink_to("/bin/echo")

    assert await output.read() == b"-m child\n"


async def test_the_child_knows_no_setting(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_STORAGE_KEYS", "hush")
    module.write_text("import os; print('BANKSIDE_STORAGE_KEYS' in os.environ, end='')")

    assert await ChildOutput("child").read() == b"False"


async def test_a_child_that_takes_too_long_is_ended(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gateway.child_output.DEADLINE_SECONDS", 0.5)
    pid = tmp_path / "pid"
    module.write_text(
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )

    with pytest.raises(NoOutput, match=r"not within 0\.5 s"):
        await ChildOutput("child").read()

    # The child may have been ended before it had begun, or before it had written all of it.
    begun = pid.read_text() if pid.exists() else ""
    assert not begun or not Path(f"/proc/{begun}").exists()


async def test_a_caller_that_waits_is_let_go_when_it_is_closed(module: Path) -> None:
    module.write_text("import time; time.sleep(60)")
    output = ChildOutput("child")
    waiting = asyncio.create_task(output.read())
    await asyncio.sleep(0)

    await output.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting
