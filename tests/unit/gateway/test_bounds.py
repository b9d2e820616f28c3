"""How many bodies and connections a process holds, at the edges of what it may."""

from __future__ import annotations

import asyncio
import resource

import pytest

from libs.runtime.open_files import possible_connections
from libs.runtime.process import Misconfigured
from services.gateway import bodies
from services.gateway.connection_shares import commands_of_a_tenant


async def test_a_body_whose_own_time_has_run_out_makes_room_like_any_other() -> None:
    on_their_way: dict[asyncio.Timeout, None] = {}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0) as patience:
            on_their_way[patience] = None
            await asyncio.Event().wait()

    bodies.give_up_the_oldest(on_their_way)

    assert on_their_way == {}


@pytest.mark.parametrize(
    ("soft", "hard", "possible", "raised"),
    [
        (1024, 1_000_000, 2000, [(2256, 1_000_000)]),
        (1024, 1024, 768, []),
        (1024, resource.RLIM_INFINITY, 2000, [(2256, resource.RLIM_INFINITY)]),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 2000, []),
        (4096, 4096, 2000, []),
    ],
)
def test_connections_are_as_many_as_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    hard: int,
    possible: int,
    raised: list[tuple[int, int]],
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))

    assert possible_connections("gateway", 2000) == possible
    assert asked == raised


def test_too_few_files_are_a_mistake_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))

    with pytest.raises(Misconfigured, match="ulimit"):
        possible_connections("gateway", 2000)


@pytest.mark.parametrize(
    ("in_all", "by_tls", "of_a_tenant"),
    [(8192, False, 4096), (8192, True, 3072), (720, False, 360), (1_000_000, False, 4096)],
)
def test_commands_of_a_tenant_leave_half_of_the_connections_to_others(
    in_all: int, by_tls: bool, of_a_tenant: int
) -> None:
    assert commands_of_a_tenant(in_all, by_tls=by_tls) == of_a_tenant
