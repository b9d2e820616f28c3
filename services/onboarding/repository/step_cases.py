"""Steps that an operator has to see to: refused compensations and outcomes that are not known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    update,
)

from libs.contracts.exact_json import encode
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import seconds_since
from libs.providers.outcomes import Reason
from services.onboarding.repository.tenant_rows import json_of
from services.onboarding.tables import saga_steps

Resolution = Literal["absent", "done", "refused"]

_T = saga_steps.c
_LOST_SECONDS = func.lost_history_seconds(type_=Double)
IS_THE_STEP = and_(_T.saga_id == bindparam("of_saga"), _T.name == bindparam("of_name"))


def is_refused_compensation(steps: FromClause) -> ColumnElement[bool]:
    """Of the table of steps, or an alias of it. The state is a literal, as in the condition of the partial index."""
    return and_(
        steps.c.compensation,
        steps.c.state == literal("refused", literal_execute=True),
        steps.c.settled_at.is_(None),
    )


IS_REFUSED_COMPENSATION = is_refused_compensation(saga_steps)
# A literal, likewise.
IS_UNKNOWN = and_(
    _T.state == literal("intended", literal_execute=True),
    _T.first_sent_at.is_not(None),
    or_(_T.resolution.is_(None), _T.resolution == "absent"),
)
# A provider may know of the step. An earlier decision `absent` has cleared the sends of one that is resolved as `done`.
MAY_BE_AT_PROVIDER = or_(
    _T.state != "intended", _T.first_sent_at.is_not(None), _T.resolution == "done"
)
# A saga takes a decision over by the commit that ends the state.
_CAN_BE_RESOLVED = and_(
    _T.state == literal("intended", literal_execute=True),
    or_(_T.first_sent_at.is_not(None), _T.resolution.is_not(None)),
)
_FIND_UNKNOWN_OF = (
    select(_T.saga_id, _T.name).where(_T.command_id == bindparam("of_command"), IS_UNKNOWN).limit(1)
)
_SETTLE = (
    update(saga_steps)
    .where(IS_THE_STEP, IS_REFUSED_COMPENSATION)
    .values(settled_at=func.clock_timestamp())
)
_FIND_UNKNOWN = (
    select(
        _T.saga_id,
        _T.name,
        _T.tenant,
        _T.customer_id,
        _T.operation,
        _T.command_id,
        # Null where an operator has found that the provider holds nothing of it, and nothing was sent since.
        func.coalesce(_T.first_sent_at, _T.intended_at),
        _T.last_attempt_at,
        case(
            (
                _T.first_sent_at.is_not(None),
                func.coalesce(func.least(seconds_since(_T.last_sent_at), _LOST_SECONDS), 0.0),
            ),
            else_=_LOST_SECONDS,
        ),
        IS_UNKNOWN,
        _T.resolution,
    )
    .where(IS_THE_STEP, _CAN_BE_RESOLVED)
    .with_for_update(key_share=True)
)
_RESOLVE = (
    update(saga_steps)
    .where(IS_THE_STEP)
    .values(
        resolution=bindparam("resolved_as"),
        resolved_by=bindparam("by"),
        resolution_reason=bindparam("why"),
        resolved_at=func.clock_timestamp(),
        recorded_at=func.clock_timestamp(),
        result=json_of("result_json"),
        refusal_reason=bindparam("reason"),
        refusal_code=bindparam("code"),
    )
)
_RESOLVE_ABSENT = _RESOLVE.values(first_sent_at=None, last_sent_at=None)
RESOLVED_CODE = "resolved_by_operator"
"""Stands in the place of the provider's code when an operator says that the provider refused."""


@dataclass(frozen=True, slots=True)
class UnknownStep:
    """A step that was sent and of which it is not known whether it happened, or of which an operator alone has said it.

    Args:
        command_id: the command that attempted it last; None when no process of this release has.
        first_sent_at: when it was recorded, where it is not sent since an operator found it absent.
        last_asked_at: when the provider was last sent the step or asked about it.
        last_sent_seconds_ago: the age of the last send whose outcome is not known, one that this database may have lost
            included; None when no send can arrive any more.
        is_unknown: False when an operator has decided on it, and its saga has not taken that over yet.
        decision: the operator's that stands.
    """

    saga_id: UUID
    step: str
    tenant: str
    customer_id: UUID
    operation: str
    command_id: UUID | None
    first_sent_at: datetime
    last_asked_at: datetime
    last_sent_seconds_ago: float | None
    is_unknown: bool
    decision: Resolution | None


async def settle(connection: AsyncConnection, saga_id: UUID, name: str) -> bool:
    """An operator has seen to a refused compensation; false when there is none of that name to see to."""
    settled = await connection.execute(_SETTLE, {"of_saga": saga_id, "of_name": name})
    return settled.rowcount == 1


async def find_unknown(connection: AsyncConnection, saga_id: UUID, name: str) -> UnknownStep | None:
    """A step of unknown outcome, its row locked; also one that is being attempted at the moment, and one whose saga has
    not taken over yet what an operator decided.
    """
    rows = await connection.execute(_FIND_UNKNOWN, {"of_saga": saga_id, "of_name": name})
    row = rows.first()
    return None if row is None else UnknownStep(*row)


async def find_unknown_of(connection: AsyncConnection, command_id: UUID) -> tuple[UUID, str] | None:
    """Saga and name of a step of unknown outcome that the command was the last to attempt; None: it has none."""
    row = (await connection.execute(_FIND_UNKNOWN_OF, {"of_command": command_id})).first()
    return None if row is None else (row.saga_id, row.name)


async def resolve(
    connection: AsyncConnection,
    step: UnknownStep,
    resolution: Resolution,
    result: Any,
    *,
    by: str,
    reason: str,
) -> None:
    """Store an operator's decision on a step whose row is locked; the saga acts on it when it next runs.

    Args:
        result: the provider's answer; None unless the step is done.
    """
    is_refused = resolution == "refused"
    await connection.execute(
        _RESOLVE_ABSENT if resolution == "absent" else _RESOLVE,
        {
            "of_saga": step.saga_id,
            "of_name": step.step,
            "resolved_as": resolution,
            "by": by,
            "why": reason,
            "result_json": None if resolution != "done" else encode(result).decode(),
            "reason": Reason.PROVIDER_REFUSED.value if is_refused else None,
            "code": RESOLVED_CODE if is_refused else None,
        },
    )
