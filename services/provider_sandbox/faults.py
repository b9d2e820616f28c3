"""Faults that a test orders: how the bank misbehaves, per API and operation.

Rules live in this process's memory: the sandbox is one process, and a restarted one behaves well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from services.provider_sandbox.operations import Api, Body

FaultKind = Literal[
    "latency", "error", "accept_then_drop", "duplicate_reply", "fail_after_success", "refuse"
]
ANY_OPERATION = "*"
MAX_MILLISECONDS = 600_000


def _number(value: object) -> object:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[Decimal, BeforeValidator(_number)]


class FaultRule(Body):
    """One rule. `times` counts its applications (null: for ever); `probability` is drawn at each request."""

    api: Api
    operation: str = ANY_OPERATION
    kind: FaultKind
    milliseconds: Annotated[Number, Field(ge=0, le=MAX_MILLISECONDS)] | None = None
    probability: Annotated[Number, Field(ge=0, le=1)] = Decimal(1)
    times: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _latency_has_a_length(self) -> Self:
        if self.kind == "latency" and self.milliseconds is None:
            raise ValueError("latency needs milliseconds")
        return self


@dataclass
class _Standing:
    rule: FaultRule
    applied: int = 0

    @property
    def spent(self) -> bool:
        return self.rule.times is not None and self.applied >= self.rule.times


class UnknownOperation(Exception):
    """The API has no operation of that name, so the rule could never apply."""


class Faults:
    """The standing rules. Without any, a look costs one test of an empty table.

    Args:
        operations: the names of each API's operations.
        draw: a number in [0, 1); a rule applies when it is below the rule's probability.
    """

    def __init__(
        self,
        operations: Mapping[Api, frozenset[str]],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._operations = operations
        self._draw = draw
        self._rules: dict[tuple[str, str, str], _Standing] = {}

    def put(self, rule: FaultRule) -> None:
        """Add the rule, or replace the one of the same api, operation and kind. Raises UnknownOperation."""
        if rule.operation != ANY_OPERATION and rule.operation not in self._operations[rule.api]:
            names = ", ".join(sorted(self._operations[rule.api]))
            raise UnknownOperation(f"operation: {rule.api} has {names}, or * for all of them")
        self._rules[rule.api, rule.operation, rule.kind] = _Standing(rule)

    def clear(self) -> int:
        """Remove all rules; how many there were."""
        count = len(self._rules)
        self._rules.clear()
        return count

    def standing(self) -> list[dict[str, object]]:
        return [
            {**standing.rule.model_dump(), "applied": standing.applied}
            for standing in self._rules.values()
        ]

    def apply(self, api: Api, operation: str, kind: FaultKind) -> list[FaultRule]:
        """The rules that strike this time; each is counted, and gone when its `times` are used up."""
        if not self._rules:
            return []
        struck = []
        for name in (operation, ANY_OPERATION):
            standing = self._rules.get((api, name, kind))
            if standing is None or self._draw() >= standing.rule.probability:
                continue
            standing.applied += 1
            struck.append(standing.rule)
            if standing.spent:
                del self._rules[api, name, kind]
        return struck
