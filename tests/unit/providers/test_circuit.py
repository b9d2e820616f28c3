from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from libs.backoff import Backoff
from libs.providers.circuit import LEFT_ALONE_SECONDS, Circuit
from libs.providers.errors import AttemptFailed, Failure
from libs.providers.exchanges import Exchanges
from tests.unit.providers.conftest import soon


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> Circuit:
    circuit = Circuit(failures_to_open=2, pauses=Backoff(1, 3), clock=clock)
    circuit.failed()
    circuit.failed()
    return circuit


def test_only_failures_in_a_row_open_it() -> None:
    circuit = Circuit(failures_to_open=2)

    circuit.failed()
    circuit.succeeded()
    circuit.failed()

    assert circuit.admit()


def test_after_the_pause_one_probe_passes_at_a_time() -> None:
    clock = Clock()
    circuit = opened(clock)
    assert not circuit.admit()

    clock.now = 1

    assert [circuit.admit(), circuit.admit()] == [True, False]


def test_each_failed_probe_doubles_the_pause_up_to_the_bound() -> None:
    clock = Clock()
    circuit = opened(clock)
    pauses = []

    for _ in range(4):
        begun = clock.now
        while not circuit.admit():
            clock.now += 0.5
        pauses.append(clock.now - begun)
        circuit.failed()

    assert pauses == [1, 2, 3, 3]


def test_an_abandoned_probe_makes_room_for_the_next() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 1
    circuit.admit()

    circuit.abandoned()

    assert circuit.admit()


def test_late_failures_do_not_prolong_the_pause() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 0.9

    circuit.failed()

    clock.now = 1
    assert circuit.admit()


def test_opening_and_closing_are_told_once() -> None:
    told: list[bool] = []
    circuit = Circuit(failures_to_open=1, changed=told.append)

    circuit.failed()
    circuit.failed()
    circuit.succeeded()
    circuit.succeeded()

    assert told == [True, False]


async def test_a_process_that_no_longer_asks_a_provider_does_not_export_that_it_is_down() -> None:
    clock = Clock()
    exchanges = Exchanges("core", circuit=opened(clock))
    exported = []

    async def is_down(_: float) -> None:
        raise AttemptFailed(Failure.NOT_CONNECTED)

    for clock.now in (0, LEFT_ALONE_SECONDS, LEFT_ALONE_SECONDS + 1):
        exported.append(circuit_open("core"))
    with pytest.raises(AttemptFailed):
        await exchanges.once("open_account", is_down, deadline=soon())
    exported.append(circuit_open("core"))

    assert exported == [1, 1, 0, 1]


def circuit_open(provider: str) -> float | None:
    return REGISTRY.get_sample_value("bankside_provider_circuit_open", {"provider": provider})
