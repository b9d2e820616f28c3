from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from services.provider_sandbox.faults import FaultRule, Faults, UnknownOperation
from tests.support.with_each import with_each

OPERATIONS = frozenset({"create_customer", "list_events"})
WRONG: list[dict[str, object]] = [
    {"api": "ledger"},
    {"kind": "explosion"},
    {"kind": "latency"},
    {"kind": "latency", "milliseconds": -1},
    {"probability": Decimal("1.1")},
    {"probability": True},
    {"times": 0},
    {"times": "3"},
    {"colour": "red"},
]


def faults(draw: float = 0.0) -> Faults:
    return Faults(
        {"identity": OPERATIONS, "core": OPERATIONS, "financial": OPERATIONS}, lambda: draw
    )


def test_a_rule_strikes_its_own_api_operation_and_kind_only() -> None:
    standing = faults()

    standing.put(FaultRule(api="core", operation="create_customer", kind="error"))

    assert standing.apply("core", "create_customer", "error")
    assert not standing.apply("core", "list_events", "error")
    assert not standing.apply("core", "create_customer", "refuse")
    assert not standing.apply("identity", "create_customer", "error")


def test_the_star_strikes_every_operation_beside_the_named_rule() -> None:
    standing = faults()

    standing.put(FaultRule(api="core", kind="latency", milliseconds=Decimal(5)))
    standing.put(
        FaultRule(api="core", operation="list_events", kind="latency", milliseconds=Decimal(7))
    )

    assert len(standing.apply("core", "create_customer", "latency")) == 1
    assert len(standing.apply("core", "list_events", "latency")) == 2


def test_a_rule_is_gone_when_its_times_are_used_up() -> None:
    standing = faults()
    standing.put(FaultRule(api="core", kind="error", times=2))

    struck = [bool(standing.apply("core", "list_events", "error")) for _ in range(3)]

    assert struck == [True, True, False]
    assert standing.standing() == []


@pytest.mark.parametrize(("draw", "strikes"), [(0.29, True), (0.31, False)])
def test_a_rule_strikes_as_often_as_its_probability_says(draw: float, strikes: bool) -> None:
    standing = faults(draw)

    standing.put(FaultRule(api="core", kind="error", probability=Decimal("0.3"), times=1))

    assert bool(standing.apply("core", "list_events", "error")) is strikes
    assert bool(standing.standing()) is not strikes, "only an application counts"


def test_a_rule_replaces_the_one_of_the_same_api_operation_and_kind() -> None:
    standing = faults()
    standing.put(FaultRule(api="core", kind="error", times=1))

    standing.put(FaultRule(api="core", kind="error", times=7))
    standing.put(FaultRule(api="core", kind="refuse"))

    assert [(rule["kind"], rule["times"]) for rule in standing.standing()] == [
        ("error", 7),
        ("refuse", None),
    ]
    assert standing.clear() == 2
    assert not standing.apply("core", "list_events", "error")


def test_a_rule_for_an_operation_that_is_none_is_refused_with_the_names() -> None:
    with pytest.raises(UnknownOperation, match=r"create_customer, list_events"):
        faults().put(FaultRule(api="core", operation="create_custumer", kind="error"))


@with_each(WRONG)
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FaultRule.model_validate({"api": "core", "kind": "error"} | wrong)
