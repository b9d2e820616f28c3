"""The replacement of processes that share the port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
import structlog

from libs.runtime.supervision import Child, ChildSpec, NotReady, Supervisor
from services.gateway.processes import replace_for_ever
from services.gateway.settings import Settings
from tests.support.waiting import eventually

CHILDREN = ("gateway-0", "gateway-1")


async def _is_ready() -> bool:
    return True


class Recorder(Supervisor):
    """Starts no process, and notes what it is asked for.

    Args:
        never_ready: a child that does not become ready.
    """

    def __init__(self, never_ready: str = "") -> None:
        super().__init__()
        self._never_ready = never_ready
        self.asked: list[str] = []
        for name in CHILDREN:
            self._add(ChildSpec(name, ("true",), env={}, ready=_is_ready))

    def _add(self, spec: ChildSpec) -> None:
        self.children[spec.name] = Child(spec, lambda _: None)

    def start(self, spec: ChildSpec) -> None:
        self._add(spec)
        self.asked.append(f"start {spec.name}")

    async def stop(self, name: str) -> None:
        del self.children[name]
        self.asked.append(f"stop {name}")

    def renew(self, name: str) -> None:
        self.asked.append(f"renew {name}")

    async def until_ready(self, names: Iterable[str], timeout_seconds: float) -> None:
        if self._never_ready in names:
            raise NotReady([self._never_ready], timeout_seconds)


async def replaced(supervisor: Recorder, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is logged when the replacement of all children is over."""
    monkeypatch.setattr(Settings, "examine", lambda: (None, []))
    wanted = asyncio.Event()
    wanted.set()
    with structlog.testing.capture_logs() as logs:

        async def is_over() -> bool:
            return bool(logs) and not wanted.is_set()

        replacing = asyncio.create_task(replace_for_ever(supervisor, wanted, supervisor.renew))
        await eventually("the replacement is over", is_over)
        replacing.cancel()
        await asyncio.wait({replacing})
    [line] = logs
    return str(line["event"])


async def test_replaced_processes_keep_their_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Recorder()

    assert await replaced(supervisor, monkeypatch) == "children_replaced"

    assert supervisor.asked == [f"{what} {name}" for name in CHILDREN for what in ("stop", "start")]


async def test_a_process_that_does_not_become_ready_gets_new_sockets_before_it_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = Recorder(never_ready=CHILDREN[0])

    assert await replaced(supervisor, monkeypatch) == "children_not_replaced"

    again = ["stop", "renew", "start"]
    assert supervisor.asked == [f"{what} {CHILDREN[0]}" for what in ("stop", "start", *again)]
