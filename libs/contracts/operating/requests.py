"""The way of one request: what services have recorded of it, put together by the gateway in the order of time."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPMethod
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.audit import SERVICES
from libs.contracts.operating.services import for_each_service, of_gateway, of_services
from libs.contracts.operation import GATEWAY, Operation
from libs.contracts.principal import Role

MOST_RESOURCES = 50
"""Of one request: wires and customers whose events are looked for."""
NOTHING_RECORDED = (
    "Nothing is recorded of this request: it was a read, or was refused before it became a command, or is older than"
    " what is kept (commands 24 hours, wires for ever, events 30 days). A write that repeats an Idempotency-Key is"
    " recorded under the id of the first request with that key. Of each audit the latest 20,000 rows were searched:"
    " `bankside audit` finds older ones. The log lines of the services have the id."
)


class StepKind(StrEnum):
    """Of what a step is."""

    COMMAND = "command"
    RESULT = "result"
    CUSTOMER = "customer"
    SUBSCRIPTION = "subscription"
    WIRE = "wire"
    PROVIDER_REQUEST = "provider_request"
    EVENT = "event"
    DELIVERY = "delivery"
    ATTEMPT = "attempt"
    AUDIT = "audit"


class TraceStep(Model):
    """A moment on the way of a request. What does not apply to its kind is null.

    Args:
        what: the operation of a command or result, the step of a saga, the type of an event, the action in the audit;
            of other kinds, a few words.
        state: after this step; of a customer, a subscription, a provider's request and a delivery, as it is now.
        error: the code of an error, or why a delivery failed.
        until: when a provider's request was answered.
        attempts: so far; of an attempt, its number.
        actor: as the audit has it.
        idempotency_key: of a provider's request.
        request_id: of an event that another request raised; null for this one, and for what no request raised.
        note: a sentence, nothing sensitive; also the comment of an approver, and an operator's reason.
    """

    at: f.UtcDateTime
    """When it was."""
    service: str
    kind: Annotated[StepKind, Field(strict=False)]
    """Of what it is a step."""
    what: str
    state: str | None = None
    error: str | None = None
    response_status: int | None = None
    """The HTTP status of the answer."""
    duration_ms: int | None = None
    """How long it took, in milliseconds."""
    until: f.UtcDateTime | None = None
    attempts: int | None = None
    next_attempt_at: f.UtcDateTime | None = None
    """When it is tried next."""
    subscription_key: str | None = None
    actor: str | None = None
    address: str | None = None
    """Where the request came from."""
    tenant: str | None = None
    customer_id: str | None = None
    """The customer that it belongs to."""
    command_id: str | None = None
    transaction_id: str | None = None
    """The wire's id."""
    saga_id: str | None = None
    idempotency_key: str | None = None
    event_id: str | None = None
    resource_id: str | None = None
    subscription_id: str | None = None
    delivery_id: str | None = None
    request_id: str | None = None
    note: str | None = None


class FindSteps(Command):
    """`resource_ids`: the events of these are steps as well."""

    request_id: f.FilterId
    resource_ids: Annotated[list[f.FilterId], Field(max_length=MOST_RESOURCES)] = Field(
        default_factory=list
    )


class FoundSteps(Model):
    """What one service has.

    Args:
        resource_ids: of the wires of the request, and of customers that it made.
        is_cut: there is more than the steps that are here.
    """

    steps: list[TraceStep]
    resource_ids: list[str] = Field(default_factory=list)
    is_cut: bool = False


class TraceRequest(Command):
    """The request of this `X-Request-Id`, which errors have as `request_id`."""

    request_id: f.FilterId
    """The `X-Request-Id`."""


class RequestTrace(Model):
    """The way of a request.

    Args:
        steps: in the order of time.
        cut: services that have more than is here.
        unreachable: services whose steps are missing.
        note: why there is no step; null when there is one.
    """

    request_id: str
    """The request's id."""
    steps: list[TraceStep]
    cut: list[str]
    unreachable: list[str]
    note: str | None


STEPS_OF = for_each_service(
    SERVICES,
    "find_steps",
    command=FindSteps,
    reply=FoundSteps,
    summary="What this service has recorded of a request",
)
"""A service that has nothing of the request answers that there are no steps."""

TRACE_REQUEST = Operation(
    name=f"{GATEWAY}.trace_request",
    method=HTTPMethod.GET,
    path="/operator/trace",
    role=Role.VIEWER,
    command=TraceRequest,
    reply=RequestTrace,
    message="Request traced",
    summary="Trace a request: its commands, what became of them, their events and deliveries",
    extension=True,
)

OPERATIONS = of_services(STEPS_OF)
GATEWAY_OPERATIONS = (TRACE_REQUEST, *of_gateway(STEPS_OF))
