"""How long `make up` waits for a stack, and what it says of one that does not become ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.state import LocalState, Remembered
from deploy.local.up import up
from libs.client.errors import OperatorError
from libs.runtime.processes import ProcessIdentity
from libs.runtime.supervision_state import ChildState, ChildStatus, SupervisorStatus

PARTS = ("postgres", "gateway")


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalState:
    """Of a stack with one service, which is running already and for which no time is left once it is started."""
    state = LocalState(tmp_path / ".local")
    state.create()
    state.remember(Remembered.new())
    state.log("supervisor").write_text("")
    monkeypatch.setattr("deploy.local.up.expected_children", lambda *_: PARTS)
    monkeypatch.setattr("deploy.local.up.READY_SECONDS", 0.0)
    monkeypatch.setattr("deploy.local.up.POLL_SECONDS", 0.001)
    for name in ("ensure_keys", "_say_where"):
        monkeypatch.setattr(f"deploy.local.up.{name}", lambda _: None)
    return state


def running(monkeypatch: pytest.MonkeyPatch, *states: dict[str, ChildState]) -> None:
    """Have the supervisor's state be each of these in turn, then the last one."""

    def found() -> Iterator[SupervisorStatus]:
        for children in (*states, *[states[-1]] * 100):
            rows = [ChildStatus(name, children[name], 0, None) for name in children]
            yield SupervisorStatus(ProcessIdentity(1, 1), tuple(rows))

    statuses = found()
    monkeypatch.setattr("deploy.local.up.running", lambda _: next(statuses))


def test_migrations_take_nothing_from_the_time_of_the_services(
    state: LocalState, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrating = {"postgres": ChildState.READY}
    running(monkeypatch, *[migrating] * 5, dict.fromkeys(PARTS, ChildState.READY))

    up(state)


def test_a_supervisor_that_never_comes_to_the_services_is_what_is_late(
    state: LocalState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.local.up.PREPARING_SECONDS", 0.0)
    running(monkeypatch, {"postgres": ChildState.READY})

    with pytest.raises(OperatorError, match=r"^supervisor is not ready"):
        up(state)


def test_a_service_that_does_not_become_ready_in_its_time_is_named(
    state: LocalState, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(monkeypatch, {"postgres": ChildState.READY, "gateway": ChildState.NOT_READY})

    with pytest.raises(OperatorError, match=r"^gateway is not ready; the stack goes on as it is"):
        up(state)
