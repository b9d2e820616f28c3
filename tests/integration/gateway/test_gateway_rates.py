"""Rates are exact over both processes, one for each key and class."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from services.gateway.admission import FEWEST_BEYOND
from tests.integration.gateway.desk import Desk
from tests.integration.gateway.test_gateway_authentication import TARGET, headers_of
from tests.support.api import Answer, Api
from tests.support.waiting import eventually

READ = "/partner/reseller/accounts/acct_1?unknown=1"
PASSED = 422


async def burst(api: Api, count: int) -> tuple[list[Answer], float]:
    """So many reads at once; the answers, and how many seconds it took."""
    started = time.monotonic()
    answers = await asyncio.gather(*(api.get(READ) for _ in range(count)))
    return list(answers), time.monotonic() - started


def passed(answers: Sequence[Answer]) -> int:
    counts = Counter(answer.status for answer in answers)
    assert set(counts) <= {PASSED, 429}
    return counts[PASSED]


@pytest.mark.parametrize("limit", [1, 30, 300])
async def test_a_minutes_amount_passes_at_once_and_then_only_what_time_gives_back(
    desk: Desk, limit: int
) -> None:
    api = await desk.new_api(per_minute=limit)

    answers, seconds = await burst(api, limit + 60)

    assert limit <= passed(answers) <= limit + math.ceil(seconds * limit / 60)


async def test_whoever_honours_retry_after_passes(desk: Desk) -> None:
    api = await desk.new_api(per_minute=60)
    await burst(api, 60)

    refused = next(a for a in (await burst(api, 30))[0] if a.status == 429)
    await asyncio.sleep(int(refused.headers["Retry-After"]))
    again = await api.get(READ)

    assert refused.code == "rate_limited"
    assert refused.headers["Retry-After"] == "1"
    assert again.status == PASSED


async def test_a_key_in_use_passes_again_at_once_when_the_databases_clock_is_set_back(
    desk: Desk,
) -> None:
    key = await desk.key(per_minute=300)
    api = desk.api(key)
    await burst(api, 10)
    # Counted by a clock that was an hour ahead.
    await desk.execute(
        "UPDATE rates SET due = due + 3600 FROM credentials c"
        " WHERE c.id = credential_id AND subscription_key = :key",
        key=key.subscription_key,
    )

    first = await api.get(READ)

    async def passes() -> bool:
        return (await api.get(READ)).status == PASSED

    assert first.status == 429
    assert int(first.headers["Retry-After"]) <= 2
    await eventually("it passes", passes)


async def test_the_headers_count_down_to_nothing_left(desk: Desk) -> None:
    api = await desk.new_api(per_minute=3)

    began = time.monotonic()
    answers = [await api.get(READ) for _ in range(4)]
    seconds = math.ceil(time.monotonic() - began)

    assert [a.headers["RateLimit-Limit"] for a in answers] == ["3"] * 4
    assert [a.headers["RateLimit-Remaining"] for a in answers] == ["2", "1", "0", "0"]
    resets = [int(a.headers["RateLimit-Reset"]) for a in answers]
    assert all(before < after for before, after in itertools.pairwise(resets[:3]))
    assert resets[2] <= 60
    assert [a.status for a in answers] == [PASSED] * 3 + [429]
    assert 20 - seconds <= int(answers[3].headers["Retry-After"]) <= 20


@pytest.mark.parametrize("per_minute", [2400, 5000, 10_000])
async def test_the_first_request_of_a_key_leaves_all_but_one(desk: Desk, per_minute: int) -> None:
    api = await desk.new_api(per_minute=per_minute)

    answer = await api.get(READ)

    assert answer.headers["RateLimit-Remaining"] == str(per_minute - 1)


async def test_reads_and_writes_are_counted_apart(desk: Desk) -> None:
    api = await desk.new_api(per_minute=5, writes_per_minute=2)
    target = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"

    writes = [await api.patch(target, {"unknown": 1}) for _ in range(3)]
    reads = [await api.get(READ) for _ in range(6)]

    assert [a.status for a in writes] == [422, 422, 429]
    assert [a.status for a in reads] == [PASSED] * 5 + [429]
    assert writes[0].headers["RateLimit-Limit"] == "2"


async def test_keys_of_one_tenant_do_not_share_a_rate(desk: Desk) -> None:
    first = await desk.new_api(per_minute=1)
    second = await desk.new_api(per_minute=1, tenant=first.key.tenant)

    answers = [await api.get(READ) for api in (first, second, first, second)]

    assert [a.status for a in answers] == [PASSED, PASSED, 429, 429]


async def test_a_replayed_request_is_not_counted(desk: Desk) -> None:

    api = await desk.new_api(per_minute=2)
    headers = headers_of(api.key)

    replays = [await desk.send(headers, TARGET) for _ in range(5)]
    second = await api.get(READ)

    assert [a.status for a in replays] == [PASSED] + [401] * 4
    assert second.status == PASSED


async def test_what_is_refused_after_the_rate_tells_the_rate_as_well(desk: Desk) -> None:
    api = await desk.new_api(scopes=frozenset(), per_minute=10)

    refused = await api.get(READ)

    assert (refused.status, refused.headers["RateLimit-Remaining"]) == (403, "9")


async def test_a_key_that_goes_on_beyond_its_rate_fills_no_table_and_what_it_sent_never_passes(
    desk: Desk,
) -> None:
    key = await desk.key(per_minute=1, writes_per_minute=1_000)
    api = desk.api(key)

    async def nonces() -> int:
        return int(await of_key("SELECT count(*) FROM nonces n"))

    async def of_key(query: str) -> Any:
        joined = " JOIN credentials c ON c.id = credential_id WHERE subscription_key = :key"
        [row] = await desk.execute(query + joined, key=key.subscription_key)
        return row[0]

    admitted = headers_of(key)
    answers = [await desk.send(admitted, TARGET)]
    while await nonces() == len(answers):
        assert len(answers) < 10 * FEWEST_BEYOND, "every request is recorded"
        answers += (await burst(api, 50))[0]
    closed_to = await of_key("SELECT closed_to FROM rates r")
    kept = headers_of(key, timestamp=str(closed_to))
    recorded = await nonces()
    refused = await desk.send(kept, TARGET)
    copy = await desk.send(admitted, TARGET)
    write = await api.patch(
        "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01", {"unknown": 1}
    )

    assert {answer.code for answer in answers if answer.status != PASSED} == {"rate_limited"}
    assert refused.code == "rate_limited"
    assert copy.code == "nonce_reused", "a 429 would say that nothing was started"
    assert await nonces() == recorded + 1  # of the write
    assert write.status == PASSED, "the other classes go on"
    await desk.execute("UPDATE rates SET due = 0")
    assert (await desk.send(kept, TARGET)).code == "rate_limited", "it would be a replay"
