"""Steps of sagas, writes at providers, as operators see them, and what they do about them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import Operation, declared_in
from libs.contracts.principal import Role


class StepCommand(Model):
    """The command that attempted a step last."""

    command_id: str
    attempts: int
    last_error: str | None
    next_attempt_at: f.UtcDateTime | None
    """When it is driven next; null while it is parked, and when it is final."""
    is_driven: bool
    parked_because: str | None
    finished_at: f.UtcDateTime | None
    """When it was final; null until then."""


class SagaStep(Model):
    """A write at a provider.

    Args:
        compensation: it takes an earlier step back.
        outcome_unknown: it was sent, and it is not known whether it happened.
        first_sent_at: null while certainly nothing was sent.
        last_asked_at: when the provider was last sent the step or asked about it.
        resolution: what an operator said became of it.
        command: null when the command is not kept any more.
    """

    saga_id: str
    """The id of the saga: what one onboarding, update or external account asks of providers."""
    step: str
    """The name of the step, one of its saga."""
    tenant: str
    customer_id: str
    operation: str
    compensation: bool
    state: Literal["intended", "done", "refused"]
    """`intended` until the provider has answered; then `done` or `refused`."""
    outcome_unknown: bool
    refusal_reason: str | None
    """Our reason for the refusal; null where there was none."""
    refusal_code: str | None
    """The provider's own code of the refusal, with its words where it gave some; null where there was none."""
    intended_at: f.UtcDateTime
    """When the step was recorded, before anything was sent."""
    first_sent_at: f.UtcDateTime | None
    last_asked_at: f.UtcDateTime | None
    recorded_at: f.UtcDateTime | None
    """When the provider's answer, or an operator's decision on the step, was recorded; null until then."""
    settled_at: f.UtcDateTime | None
    """When an operator said that a refused compensation has been seen to."""
    resolution: str | None
    resolved_by: str | None
    """The operator who resolved it."""
    resolution_reason: str | None
    """The reason that the operator gave."""
    resolved_at: f.UtcDateTime | None
    """When the operator resolved it."""
    command_id: str | None
    """The command that attempted the step last."""
    command: StepCommand | None


class StepKind(StrEnum):
    """`unknown`: sent, and it is not known whether it happened. `refused`: a refused compensation, not settled."""

    UNKNOWN = "unknown"
    REFUSED = "refused"


class ListSagaSteps(ListPage):
    """By the time of the first send, or of the refusal."""

    kind: Annotated[StepKind, Field(strict=False)]
    """Which steps."""


class StepResolution(StrEnum):
    """`absent`: the provider holds nothing of the step, so that it is sent as if for the first time. `done`: it
    happened. `refused`: the provider refused it.
    """

    ABSENT = "absent"
    DONE = "done"
    REFUSED = "refused"


class ResolveStep(Write):
    """Say what became of a step; its command goes on accordingly. Until it has, another decision replaces this one."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    saga_id: str
    """The saga of the step."""
    step: str
    """The name of the step."""
    resolution: Annotated[StepResolution, Field(alias="as", strict=False)]
    """What became of the step."""
    result: dict[str, Any] | None = None
    """The provider's answer to a step that is done; absent for others. With the id of another customer's record it is
    409 `invalid_state`.
    """

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        if (values.get("as") == StepResolution.DONE) != (values.get("result") is not None):
            rule = "the provider's answer is given for a step that is done, and only then"
            return [(("result",), rule)]
        if _has_nul(values.get("result")):
            return [(("result",), "it has a NUL character, which cannot be stored")]
        return []


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_nul(part) for part in (*value, *value.values()))
        case list():
            return any(map(_has_nul, value))
        case _:
            return False


class ResolvedStep(Model):
    """A step as it was before the decision."""

    saga_id: str
    """The saga of the step."""
    step: str
    """The name of the step."""
    tenant: str
    customer_id: str
    operation: str
    command_id: str | None
    first_sent_at: f.UtcDateTime
    """When the step was sent first."""
    last_asked_at: f.UtcDateTime
    """When the provider was last sent the step or asked about it."""
    resolution: StepResolution
    """What the operator said."""
    is_open: bool
    """Whether its command goes on; else the decision is only recorded."""


class SettleStep(Write):
    """A compensation that a provider refused has been seen to by other means. Alerts and lists leave it out from then
    on.
    """

    saga_id: str
    """The saga of the step."""
    step: str
    """The name of the step."""


class SettledStep(Model):
    """A compensation that is settled."""

    saga_id: str
    """The saga of the step."""
    step: str
    """The name of the step."""
    settled: bool
    """Always true."""


LIST_STEPS = Operation(
    name="onboarding.operator_list_steps",
    method=HTTPMethod.GET,
    path="/operator/saga-steps",
    role=Role.VIEWER,
    command=ListSagaSteps,
    reply=Listed[SagaStep],
    message="Steps found",
    summary="List steps of unknown outcome, or compensations that a provider refused",
)
RESOLVE_STEP = Operation(
    name="onboarding.operator_resolve_step",
    method=HTTPMethod.POST,
    path="/operator/saga-steps/{saga_id}/{step}/resolve",
    role=Role.OPERATOR,
    command=ResolveStep,
    reply=ResolvedStep,
    message="Step resolved",
    errors=(e.NotFound, e.InvalidState),
    summary="Say what became of a step whose outcome is not known",
)
SETTLE_STEP = Operation(
    name="onboarding.operator_settle_step",
    method=HTTPMethod.POST,
    path="/operator/saga-steps/{saga_id}/{step}/settle",
    role=Role.OPERATOR,
    command=SettleStep,
    reply=SettledStep,
    message="Compensation settled",
    errors=(e.NotFound,),
    summary="Say that a refused compensation has been seen to",
)

OPERATIONS = declared_in(globals(), Operation)
