"""The way of one request, over all services."""

from __future__ import annotations

import time

from libs.contracts.operating import requests as contract
from libs.contracts.operating.requests import StepKind, TraceStep
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from services.gateway.operating.asking import Services

TRACE_SECONDS = 9.0
"""For both questions: a console waits 10 s for the answer, which names the services that do not answer."""
DELIVERING = "webhook_dispatcher"
"""It is asked last: for the events of what the others have found as well."""
RECORDING = {name: row for name, row in contract.STEPS_OF.items() if name != DELIVERING}


class RequestTraces:
    """The handler of the row that traces."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def by_operation(self) -> dict[str, QueryHandler]:
        return {contract.TRACE_REQUEST.name: self._trace}

    async def _trace(
        self, principal: Principal, command: contract.TraceRequest, deadline: float
    ) -> Result:
        request_id = command.request_id
        deadline = min(deadline, time.time() + TRACE_SECONDS)
        recorded = await self._services.ask_each(
            RECORDING,
            principal,
            contract.FindSteps(request_id=request_id),
            deadline,
            # What is left is for the service that is asked afterwards.
            seconds=(deadline - time.time()) / 2,
        )
        made = [each for found in recorded.by_service.values() for each in found.resource_ids]
        resource_ids = [*dict.fromkeys(made)]
        delivered = await self._services.ask_each(
            contract.STEPS_OF,
            principal,
            contract.FindSteps(
                request_id=request_id, resource_ids=resource_ids[: contract.MOST_RESOURCES]
            ),
            deadline,
            only=DELIVERING,
        )
        by_service = {**recorded.by_service, **delivered.by_service}
        unreachable = [*recorded.unreachable, *delivered.unreachable]
        cut = {name for name, found in by_service.items() if found.is_cut}
        if len(resource_ids) > contract.MOST_RESOURCES:
            cut.add(DELIVERING)
        steps = _in_order([step for found in by_service.values() for step in found.steps])
        return Result(
            contract.RequestTrace(
                request_id=request_id,
                steps=steps,
                cut=sorted(cut),
                unreachable=sorted(unreachable),
                note=None if steps or unreachable else contract.NOTHING_RECORDED,
            )
        )


def _in_order(steps: list[TraceStep]) -> list[TraceStep]:
    """By time. An event that was published while it was looked for is there once, where it arrived."""
    arrived = {step.event_id for step in steps if step.service == DELIVERING}
    kept = (
        step
        for step in steps
        if step.kind is not StepKind.EVENT
        or step.service == DELIVERING
        or step.event_id not in arrived
    )
    return sorted(kept, key=lambda step: step.at)
