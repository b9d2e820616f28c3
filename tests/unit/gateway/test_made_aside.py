"""Bytes that a process of its own makes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.gateway.made_aside import MadeAside, NotMade


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a module that can be made with; it is empty."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "making.py"


async def test_all_who_ask_get_the_bytes_of_one_process(module: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    module.write_text(f"open({str(runs)!r}, 'a').write('x'); print('a' * 1_000_000, end='')")
    aside = MadeAside("making")

    made = await asyncio.gather(aside.made(), aside.made())

    assert [*made, await aside.made()] == [b"a" * 1_000_000] * 3
    assert runs.read_text() == "x"


async def test_what_failed_is_tried_again_for_the_next_who_asks(module: Path) -> None:
    module.write_text("raise SystemExit(3)")
    aside = MadeAside("making")

    with pytest.raises(NotMade, match="exit code 3"):
        await aside.made()
    module.write_text("import sys; print(*sys.argv[1:], end='')")

    assert await MadeAside("making", "one", "two").made() == b"one two"
    assert await aside.made() == b""


async def test_what_makes_them_knows_no_setting(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_STORAGE_KEYS", "hush")
    module.write_text("import os; print('BANKSIDE_STORAGE_KEYS' in os.environ, end='')")

    assert await MadeAside("making").made() == b"False"


async def test_it_does_not_take_longer_than_it_may(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gateway.made_aside.DEADLINE_SECONDS", 0.5)
    pid = tmp_path / "pid"
    module.write_text(
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )

    with pytest.raises(NotMade, match=r"not within 0\.5 s"):
        await MadeAside("making").made()

    assert not pid.exists() or not Path(f"/proc/{pid.read_text()}").exists()


async def test_who_waits_is_let_go_when_it_is_closed(module: Path) -> None:
    module.write_text("import time; time.sleep(60)")
    aside = MadeAside("making")
    waiting = asyncio.create_task(aside.made())
    await asyncio.sleep(0)

    await aside.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting
