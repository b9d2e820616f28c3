"""The traffic of the last minutes, as charts show it."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import UTC, datetime

from libs.contracts.operating import traffic as t
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from services.gateway.queue_samples import QueueSamples
from services.gateway.traffic import TrafficCounts

REFUSED, FAILED = 4, 5


def by_operation(counts: TrafficCounts, samples: QueueSamples) -> dict[str, QueryHandler]:
    async def get_traffic(_: Principal, command: t.GetTraffic, __: float) -> Result:
        last = int(time.time()) // 60
        first = last - command.minutes + 1
        rows = await counts.since(first)
        latency = {minute: [0] * len(t.LATENCY_BOUNDS_MS) for minute in range(first, last + 1)}
        answers = dict.fromkeys(
            ((minute, answer) for minute in latency for answer in (REFUSED, FAILED)), 0
        )
        for row in rows:
            if row["minute"] in latency:
                latency[row["minute"]][row["latency"]] += row["requests"]
            if (row["minute"], row["answer"]) in answers:
                answers[row["minute"], row["answer"]] += row["requests"]
        minutes = [
            t.MinuteOfTraffic(
                minute=datetime.fromtimestamp(minute * 60, UTC),
                requests=sum(counted),
                refused=answers[minute, REFUSED],
                failed=answers[minute, FAILED],
                latency=counted,
            )
            for minute, counted in latency.items()
        ]
        depths: dict[str, dict[int, int]] = defaultdict(dict)
        for row in await samples.since(first):
            depths[row["service"]][row["minute"]] = row["messages"]
        queues = [
            t.QueuedMessages(service=service, messages=[known.get(minute) for minute in latency])
            for service, known in depths.items()
        ]
        return Result(
            t.Traffic(bounds_ms=list(t.LATENCY_BOUNDS_MS), minutes=minutes, queues=queues)
        )

    return {t.GET_TRAFFIC.name: get_traffic}
