"""Faults that a test orders, by operation: those of the simulated bank, and Increase's own ways to say no.

| kind | what happens |
|---|---|
| `latency` | waits `milliseconds` before anything else |
| `rate_limit` | 429, no effect; `retry_after` is in its body and, where `has_header`, in `Retry-After` |
| `refuse` | a definite no without effect: 409 `invalid_operation_error` (403 for a GET) |
| `private_feature` | 403 `private_feature_error`, no effect |
| `error` | 500 before any effect |
| `drop` | the connection is closed before any effect |
| `duplicate_reply` | the request is handled twice; the second answer is sent |
| `key_conflict` | 409 `idempotency_key_already_used_error` with the object's id, after the effect |
| `fail_after_success` | 500 after the effect |
| `accept_then_drop` | the connection is closed after the effect, without an answer |
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FaultKind = Literal[
    "latency",
    "rate_limit",
    "refuse",
    "private_feature",
    "error",
    "drop",
    "duplicate_reply",
    "key_conflict",
    "fail_after_success",
    "accept_then_drop",
]
ANY_OPERATION = "*"


class FaultRule(BaseModel):
    """One rule. `times` counts its applications (null: for ever); `probability` is drawn at each request."""

    model_config = ConfigDict(extra="forbid")

    operation: str = ANY_OPERATION
    kind: FaultKind
    milliseconds: float | None = Field(default=None, ge=0, le=600_000)
    retry_after: int = Field(default=1, ge=0, le=3600)
    has_header: bool = True
    probability: float = Field(default=1.0, ge=0, le=1)
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _latency_has_a_length(self) -> FaultRule:
        if self.kind == "latency" and self.milliseconds is None:
            raise ValueError("latency needs milliseconds")
        return self


@dataclass
class Standing:
    rule: FaultRule
    applied: int = 0


@dataclass
class Faults:
    """The standing rules, in memory: a restarted bank behaves well."""

    draw: Callable[[], float] = random.random
    standing: dict[tuple[str, str], Standing] = field(default_factory=dict)

    def put(self, rule: FaultRule) -> None:
        """Add the rule, or replace the one of the same operation and kind."""
        self.standing[rule.operation, rule.kind] = Standing(rule)

    def clear(self) -> None:
        self.standing.clear()

    def struck(self, operation: str, kind: FaultKind) -> FaultRule | None:
        """The rule that strikes this time; it is gone when its `times` are used up."""
        if not self.standing:
            return None
        for name in (operation, ANY_OPERATION):
            found = self.standing.get((name, kind))
            if found is None or self.draw() >= found.rule.probability:
                continue
            found.applied += 1
            if found.applied == found.rule.times:
                del self.standing[name, kind]
            return found.rule
        return None
