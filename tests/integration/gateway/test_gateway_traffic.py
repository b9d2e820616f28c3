"""Requests of partners and customers are counted by minute, over all processes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts.errors import Unavailable
from libs.contracts.model import Command
from libs.contracts.operating.traffic import LATENCY_BOUNDS_MS, MOST_MINUTES
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from services.gateway.operating.asking import Services
from services.gateway.queue_samples import QueueSamples
from services.gateway.traffic import TrafficCounts
from tests.integration.gateway.desk import Desk, until

TRAFFIC = "/operator/traffic"


def totals(data: Mapping[str, Any]) -> list[int]:
    return [
        sum(minute[name] for minute in data["minutes"])
        for name in ("requests", "refused", "failed")
    ]


async def test_what_two_processes_counted_is_added_minute_by_minute(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = await desk.operator("viewer")
    hour_ago = int(time.time()) // 60 * 60 - 3600
    one, other = TrafficCounts(desk.database), TrafficCounts(desk.database)
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: float(hour_ago))
        for counts in (one, other):
            counts.note(200, 0.004)
            counts.note(422, 0.2)
            counts.note(504, 3600)
    await desk.execute("DELETE FROM traffic WHERE minute = :minute", minute=hour_ago // 60)

    for counts in (one, other, one):  # what was written is not written again
        await counts.write()

    data = (await viewer.get(f"{TRAFFIC}?minutes=90")).data
    at = datetime.fromtimestamp(hour_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    [minute] = [each for each in data["minutes"] if each["minute"] == at]
    assert (minute["requests"], minute["refused"], minute["failed"]) == (6, 2, 2)
    counted = dict(zip(LATENCY_BOUNDS_MS, minute["latency"], strict=True))
    assert {bound: count for bound, count in counted.items() if count} == {5: 2, 250: 2, 30000: 2}
    assert len(data["minutes"]) == 90


class Answering:
    """Services that answer how full their queues are; `payments` cannot ask the broker, `onboarding` is away."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def query(
        self, operation: Operation, _: Principal, __: Command, ___: float
    ) -> Mapping[str, Any]:
        self.asked.append(operation.service)
        if operation.service == "onboarding":
            raise Unavailable
        depths = [
            {"queue": "webhook_dispatcher.queries", "messages": 4},
            {"queue": "webhook_dispatcher.events", "messages": 3},
            {"queue": "webhook_dispatcher.events.dead", "messages": 1000},
        ]
        return {"data": {"queues": None if operation.service == "payments" else depths}}


async def test_queues_are_looked_at_once_a_minute_by_one_process(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = await desk.operator("viewer")
    hour_ago = int(time.time()) // 60 * 60 - 3600
    services = Answering()
    processes = [QueueSamples(desk.database, Services(services, {})) for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: float(hour_ago))
        for each in (*processes, *processes):
            await each.write()

    data = (await viewer.get(f"{TRAFFIC}?minutes=90")).data
    at = datetime.fromtimestamp(hour_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    [index] = [number for number, each in enumerate(data["minutes"]) if each["minute"] == at]
    found = {each["service"]: each["messages"] for each in data["queues"]}
    assert found["webhook_dispatcher"][index] == 7
    assert found["webhook_dispatcher"][index - 1] is None
    assert {len(messages) for messages in found.values()} == {90}
    assert not {"payments", "onboarding"} & {
        name for name, messages in found.items() if messages[index] is not None
    }
    assert len(services.asked) == len({*services.asked})


async def test_requests_of_callers_are_written_by_the_gateway(desk: Desk) -> None:
    viewer, partner = await desk.operator("viewer"), await desk.new_api(scopes=frozenset())
    before = totals((await viewer.get(TRAFFIC)).data)

    for _ in range(3):
        await partner.get("/partner/reseller/accounts")

    async def are_counted() -> bool:
        now = totals((await viewer.get(TRAFFIC)).data)
        return now[1] >= before[1] + 3

    await until(are_counted, 15)


async def test_no_more_than_a_day_is_asked_for(desk: Desk) -> None:
    viewer = await desk.operator("viewer")

    for minutes in (0, MOST_MINUTES + 1):
        assert (await viewer.get(f"{TRAFFIC}?minutes={minutes}")).status == 422
