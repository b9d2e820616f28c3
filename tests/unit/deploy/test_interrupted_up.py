"""A stack that is stopped in its first second, while the supervisor still imports its modules."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from deploy.local.down import down
from deploy.local.state import LocalState
from deploy.local.up import up

Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """Supervisors that `up` starts, which get no further than to their imports."""
    supervisors: Started = []
    popen = subprocess.Popen

    def start(_: list[str], **given: Any) -> subprocess.Popen[bytes]:
        supervisors.append(popen(["sleep", "60"], **given))
        return supervisors[-1]

    monkeypatch.setattr("deploy.local.up.subprocess.Popen", start)
    monkeypatch.setattr("deploy.local.up.all_settings", lambda *_: {})
    for name in ("_check_disk", "check_ports"):
        monkeypatch.setattr(f"deploy.local.up.{name}", lambda _: None)
    monkeypatch.setattr("deploy.local.up.prometheus_targets", lambda *_: [])
    yield supervisors
    for supervisor in supervisors:
        supervisor.kill()
        supervisor.wait()


def interrupted_up(
    state: LocalState, monkeypatch: pytest.MonkeyPatch, how: type[BaseException]
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise how

    monkeypatch.setattr("deploy.local.up._wait_until_ready", interrupt)
    state.create()
    with contextlib.suppress(how):
        up(state)


def test_ctrl_c_stops_a_supervisor_that_still_imports(
    started: Started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupted_up(LocalState(tmp_path / ".local"), monkeypatch, KeyboardInterrupt)

    [supervisor] = started
    assert supervisor.poll() is not None


def test_down_stops_a_supervisor_that_still_imports(
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = LocalState(tmp_path / ".local")
    interrupted_up(state, monkeypatch, SystemExit)
    [supervisor] = started
    assert supervisor.poll() is None

    down(state)

    assert supervisor.poll() is not None
    assert capsys.readouterr().out.startswith("Stopped")
    assert not state.supervisor.exists()
