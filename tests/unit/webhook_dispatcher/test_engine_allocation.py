"""Which deliveries are begun next."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from uuid import UUID

import pytest

from services.webhook_dispatcher.engine.allocation import allocate, in_turn, most_due
from services.webhook_dispatcher.repository.claims import DueSubscription


def subscription(
    number: int,
    *,
    tenant: str | None = None,
    due: int = 16,
    in_flight: int = 0,
    **traits: bool,
) -> DueSubscription:
    return DueSubscription(
        id=UUID(int=number),
        tenant=tenant or f"t_{number}",
        callback_url="",
        secret=b"",
        previous_secret=None,
        previous_secret_expires_at=None,
        generation=0,
        is_half_open=traits.get("is_half_open", False),
        is_slow=traits.get("is_slow", False),
        in_flight=in_flight,
        due=due,
        due_since=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_subscription_has_sixteen_in_flight_two_when_slow_one_when_half_open() -> None:
    found = [
        subscription(1),
        subscription(2, is_slow=True),
        subscription(3, is_slow=True, is_half_open=True),
        subscription(4, due=3),
        subscription(5, in_flight=15),
    ]

    begun = allocate(found, {}, slots=256, used=0)

    assert begun == {UUID(int=n): count for n, count in ((1, 16), (2, 2), (3, 1), (4, 3), (5, 1))}


def test_one_that_is_full_gets_none() -> None:
    found = [
        subscription(1, in_flight=16),
        subscription(2, in_flight=2, is_slow=True),
        subscription(3, in_flight=1, is_half_open=True),
    ]

    assert allocate(found, {}, slots=256, used=0) == {}


def test_slots_go_round_the_subscriptions_in_turn() -> None:
    found = [subscription(n) for n in range(1, 9)]

    begun = allocate(found, {}, slots=100, used=90)

    assert list(begun.items()) == [(UUID(int=n), 2 if n <= 2 else 1) for n in range(1, 9)]


def test_a_tenant_gets_a_quarter_of_the_slots_while_others_wait() -> None:
    crowd = [subscription(n, tenant="crowd") for n in range(1, 21)]
    others = [subscription(n) for n in range(21, 33)]

    begun = allocate([*crowd, *others], {"crowd": 10}, slots=256, used=10)

    assert sum(begun.get(one.id, 0) for one in crowd) == 64 - 10
    assert sum(begun.values()) == 256 - 10


def test_what_others_leave_over_is_lent_but_for_the_last_quarter() -> None:
    crowd = [subscription(n, tenant="crowd") for n in range(1, 21)]

    begun = allocate(crowd, {}, slots=256, used=0)

    assert sum(begun.values()) == 192
    assert allocate(crowd, {"crowd": 192}, slots=256, used=192) == {}


def test_the_last_quarter_is_there_for_another_tenant() -> None:
    begun = allocate([subscription(1)], {"crowd": 192}, slots=256, used=192)

    assert begun == {UUID(int=1): 16}


def test_every_subscription_has_its_turn_when_one_slot_is_free_at_a_time() -> None:
    found = [subscription(number) for number in range(1, 41)]
    Random(4).shuffle(found)
    served, last = [], UUID(int=0)

    for _ in range(120):
        [last] = allocate(in_turn(found, last), {}, slots=256, used=255)
        served.append(last)

    assert served == [UUID(int=number) for number in range(1, 41)] * 3


@pytest.mark.parametrize(
    ("subscriptions", "free", "counted"),
    [(20, 256, 16), (20, 32, 4), (20, 20, 2), (1000, 1, 2), (1, 8, 16), (1, 3, 6), (0, 256, 16)],
)
def test_of_what_is_due_twice_a_part_of_the_free_slots_is_counted(
    subscriptions: int, free: int, counted: int
) -> None:
    assert most_due(subscriptions, free) == counted
