"""What a service has recorded of one request: its commands with their answers, what they made, and its audit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from libs.contracts.errors import ERRORS, Unavailable
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.operating import commands as open_commands
from libs.contracts.operating import requests as contract
from libs.contracts.operating.pages import Order
from libs.contracts.operating.requests import StepKind, TraceStep
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from libs.handling.stored_commands import principal_of, reply_of
from libs.messaging.envelope import Reply
from libs.persistence import audit_pages, request_records
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit_pages import Wanted
from libs.persistence.engine import Database
from libs.persistence.request_records import RequestedCommand, WaitingEvent

MOST_STEPS = 400
MOST_AUDITED = 20
LONGEST_NOTE = 300
_IDS_OF_AUDIT = frozenset(
    {"command_id", "customer_id", "transaction_id", "saga_id", "subscription_id", "delivery_id"}
)
_FIELDS_OF_AUDIT = _IDS_OF_AUDIT | {
    *("at", "actor", "action", "outcome", "tenant", "address", "request_id", "body_digest", "key")
}
"""Members of an entry that are fields of a step, or are not shown."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A request with its commands in this service.

    Args:
        answered: by the ids of commands that were carried out, the data of their replies; sensitive values are sealed.
        resource_ids: as `FindSteps` has them.
    """

    request_id: str
    commands: Sequence[RequestedCommand]
    answered: Mapping[str, Mapping[str, Any]]
    resource_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class OwnSteps:
    """What the service's own tables have of a request. `resource_ids` as in `FoundSteps`."""

    steps: Sequence[TraceStep]
    resource_ids: Sequence[str] = field(default_factory=list)
    is_cut: bool = False


FindOwnSteps = Callable[[AsyncConnection, Requested], Awaitable[OwnSteps]]
"""Finds a bounded number of steps in the service's own tables. Called in a snapshot."""


class RequestSteps:
    """The handler of one service. The database bounds each statement."""

    def __init__(self, service: str, database: Database, own: FindOwnSteps | None) -> None:
        self._service = service
        self._database = database
        self._own = own

    def by_operation(self) -> dict[str, QueryHandler]:
        return {contract.STEPS_OF[self._service].name: self.find}

    async def find(self, _: Principal, command: contract.FindSteps, __: float) -> Result:
        request_id = command.request_id
        commands: list[RequestedCommand] = []
        is_cut = False
        own = OwnSteps([])
        async with self._database.snapshot() as connection:
            if self._service in open_commands.SERVICES:
                commands, is_cut = await request_records.commands_of(connection, request_id)
            replies = {
                str(one.command_id): None if one.reply is None else reply_of(one.reply)
                for one in commands
            }
            if self._own is not None:
                own = await self._own(
                    connection,
                    Requested(
                        request_id,
                        commands,
                        {command_id: _data_of(reply) for command_id, reply in replies.items()},
                        command.resource_ids,
                    ),
                )
            audited, has_more_audited = await self._audited(connection, request_id, {*replies})
        steps = [
            *(
                step
                for one in commands
                for step in _steps_of(self._service, one, replies[str(one.command_id)])
            ),
            *own.steps,
            *audited,
        ]
        steps.sort(key=lambda step: step.at)
        resource_ids = [*dict.fromkeys(own.resource_ids)]
        return Result(
            data=contract.FoundSteps(
                steps=steps[:MOST_STEPS],
                resource_ids=resource_ids[: contract.MOST_RESOURCES],
                is_cut=is_cut
                or own.is_cut
                or has_more_audited
                or len(steps) > MOST_STEPS
                or len(resource_ids) > contract.MOST_RESOURCES,
            )
        )

    async def _audited(
        self, connection: AsyncConnection, request_id: str, known: set[str]
    ) -> tuple[list[TraceStep], bool]:
        """Steps from the audit, without commands that the inbox still has, and whether there are more than are shown.
        Only the latest `audit_pages.LOOKED_AT` rows of the audit are searched.
        """
        member = f'"request_id":{encode(request_id).decode()}'
        rows, _ = await audit_pages.page(
            connection,
            Wanted(text=member),
            after=None,
            order=Order.NEWEST,
            limit=MOST_AUDITED + 1,
        )
        entries = [_entry(row.entry) for row in reversed(rows[:MOST_AUDITED])]
        steps = (
            _audit_step(self._service, entry)
            for entry in entries
            if entry.get("request_id") == request_id and entry.get("command_id") not in known
        )
        return [step for step in steps if step is not None], len(rows) > MOST_AUDITED


def waiting_event_step(service: str, event: WaitingEvent) -> TraceStep:
    """An event of this request that has not left the service."""
    return TraceStep(
        at=event.recorded_at,
        service=service,
        kind=StepKind.EVENT,
        what=event.type,
        state="unroutable" if event.is_unroutable else "not published yet",
        tenant=event.tenant,
        customer_id=event.customer_id or None,
        event_id=event.event_id,
        resource_id=event.resource_id,
    )


def _steps_of(service: str, command: RequestedCommand, reply: Reply | None) -> list[TraceStep]:
    """The command's acceptance and, once it is finished or parked, its outcome."""
    principal = principal_of(command.principal)
    is_open = command.finished_at is None and command.parked_at is None
    accepted = TraceStep(
        at=command.accepted_at,
        service=service,
        kind=StepKind.COMMAND,
        what=command.operation,
        state="open" if is_open else "accepted",
        error=command.last_error if is_open else None,
        attempts=command.attempts if is_open else None,
        next_attempt_at=command.due_at if is_open and not command.is_driven else None,
        subscription_key=principal.subscription_key if principal else None,
        actor=principal.actor if principal and principal.operator else None,
        address=principal.address if principal else None,
        tenant=(principal.tenant or None) if principal else None,
        customer_id=principal.customer_id if principal else None,
        command_id=str(command.command_id),
        note="A process drives it now." if is_open and command.is_driven else None,
    )
    at = command.finished_at or command.parked_at
    return [accepted] if at is None else [accepted, _outcome(service, command, reply, at)]


def _outcome(
    service: str, command: RequestedCommand, reply: Reply | None, at: datetime
) -> TraceStep:
    state, code, status, note = "parked", command.last_error, None, command.parked_because
    if command.abandoned_by is not None:
        state, note = "abandoned", command.abandoned_because
    elif command.forgotten:
        state, code = "forgotten", command.last_error or Unavailable.code
        status, note = int(ERRORS[code].status), "Nothing of it was started."
    elif command.finished_at is not None and reply is None:
        state, code, note = "done", None, "This release cannot read the stored answer."
    elif command.finished_at is not None and reply is not None:
        error = reply.error
        state, code, note, status = "done", None, None, 200
        if error is not None:
            told = error.to_error()
            state, code, status = "refused", error.code, int(told.status)
            note = told.detail[:LONGEST_NOTE]
    return TraceStep(
        at=at,
        service=service,
        kind=StepKind.RESULT,
        what=command.operation,
        state=state,
        error=code,
        response_status=status,
        attempts=command.attempts,
        actor=command.abandoned_by,
        command_id=str(command.command_id),
        note=note,
    )


def _data_of(reply: Reply | None) -> Mapping[str, Any]:
    if reply is None or not reply.result:
        return {}
    try:
        data = decode(bytes(reply.result)).get("data")
    except NotExactJson:
        return {}
    return data if isinstance(data, dict) else {}


def _entry(text: str) -> Mapping[str, Any]:
    """Empty for a row that was changed by other means and is no JSON object any more."""
    try:
        entry = decode(text)
    except NotExactJson:
        return {}
    return entry if isinstance(entry, dict) else {}


def _audit_step(service: str, entry: Mapping[str, Any]) -> TraceStep | None:
    """None for a row that was changed by other means and cannot be read, which `bankside audit verify` names."""
    text = {name: str(value) for name, value in entry.items()}
    others = [f"{name} {value}" for name, value in text.items() if name not in _FIELDS_OF_AUDIT]
    values = {
        "at": text.get("at"),
        "service": service,
        "kind": StepKind.AUDIT,
        "what": text.get("action"),
        "state": text.get("outcome"),
        "subscription_key": text.get("key"),
        "actor": text.get("actor") or None,
        "address": text.get("address"),
        "tenant": text.get("tenant"),
        **{name: text[name] for name in _IDS_OF_AUDIT if name in text},
        "note": ", ".join(others)[:LONGEST_NOTE] or None,
    }
    try:
        return TraceStep.model_validate(values)
    except ValidationError:
        return None
