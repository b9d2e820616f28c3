from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from deploy.local.ports import LOOPBACK
from libs.runtime import health
from libs.runtime.health import READY, Readiness, serve_admin
from tests.support.metrics import value_of

ANOTHERS = "192.0.2.7"
"""No machine has it (RFC 5737)."""


class Resolving(uvloop.Loop):
    """With names whose addresses a test says."""

    addresses: tuple[str, ...] = ()

    async def getaddrinfo(self, *_: Any, **__: Any) -> list[Any]:
        kind = socket.AF_INET, socket.SOCK_STREAM, 6, ""
        return [(*kind, (address, 0)) for address in self.addresses]


async def listening() -> list[str]:
    runner = await serve_admin("payments", Readiness(), "payments-admin", 0)
    try:
        return [host for host, _ in runner.addresses]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("addresses", [(ANOTHERS, LOOPBACK), (LOOPBACK, ANOTHERS)])
def test_a_name_that_replicas_share_is_listened_on_where_it_is_this_machines(
    addresses: tuple[str, ...],
) -> None:
    with asyncio.Runner(loop_factory=Resolving) as loop:
        loop.get_loop().addresses = addresses  # type: ignore[attr-defined]

        assert loop.run(listening()) == [LOOPBACK]


def test_a_name_that_is_not_this_machines_is_an_error() -> None:
    with asyncio.Runner(loop_factory=Resolving) as loop:
        loop.get_loop().addresses = (ANOTHERS,)  # type: ignore[attr-defined]

        with pytest.raises(OSError, match=ANOTHERS) as refused:
            loop.run(listening())

    assert refused.value.errno == errno.EADDRNOTAVAIL


@pytest.mark.parametrize("is_on", [False, True])
async def test_each_check_is_measured_whether_or_not_the_process_has_started(
    monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    monkeypatch.setattr(health, "LOGGED_AFTER_SECONDS", 0.0)
    readiness = Readiness()

    async def failing() -> None:
        raise ConnectionError

    async def passing() -> None:
        readiness.add("feed", failing)  # as a process does that is starting

    readiness.add("database", failing)
    readiness.add("broker", passing)
    readiness.switch(is_on)
    with capture_logs() as logs:
        await readiness.measure()

    checks = ("process", "database", "broker")
    assert [value_of(READY.labels(check)) for check in checks] == [is_on, 0, 1]
    assert [line["check"] for line in logs] == ["database"] * is_on


LONG_FAILURES = [
    ("readiness_failed", "warning", "database", "TimeoutError"),
    ("readiness_failed", "warning", "database", "KeyError"),
]


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
async def test_a_check_that_fails_for_long_is_logged_once_until_it_passes_again(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(health, "LOGGED_AFTER_SECONDS", seconds)
    endings = [None, "hangs", ConnectionError("postgresql://u:secret@h"), None, KeyError("secret")]
    readiness = Readiness()

    async def check() -> None:
        ending = endings.pop(0)
        if isinstance(ending, Exception):
            raise ending
        if ending == "hangs":
            await asyncio.Event().wait()

    async def passing() -> None:
        pass

    readiness.add("database", check)
    readiness.add("broker", passing)
    readiness.switch(True)
    with capture_logs() as logs:
        failures = [await readiness.failures() for _ in range(len(endings))]

    assert failures == [[], ["database"], ["database"], [], ["database"]]
    told = [(line["event"], line["log_level"], line["check"], line["error"]) for line in logs]
    assert told == ([] if seconds else LONG_FAILURES)
