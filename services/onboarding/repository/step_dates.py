"""The times of steps after a setback of the database's clock."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Interval, bindparam, case, func, literal, null, update

from libs.persistence.async_engine import AsyncConnection
from services.onboarding.tables import saga_steps

_T = saga_steps.c
_SETBACK = bindparam("setback", type_=Interval)
_DATE_BACK = (
    update(saga_steps)
    # A literal, as in the condition of the partial index.
    .where(_T.state == literal("intended", literal_execute=True))
    .values(
        intended_at=_T.intended_at - _SETBACK,
        first_sent_at=_T.first_sent_at - _SETBACK,
        last_sent_at=case(
            # Of a lost send: before the intent it stays.
            (_T.last_sent_at < _T.intended_at, _T.last_sent_at - _SETBACK),
            # An operator found the step absent: no send is known.
            (_T.last_sent_at.is_(None), null()),
            else_=func.greatest(
                func.least(_T.last_sent_at, func.clock_timestamp()),
                # Not before the intent, also where the setback was longer than is known.
                _T.intended_at - _SETBACK,
            ),
        ),
        resolved_at=_T.resolved_at - _SETBACK,
    )
)


async def date_back(connection: AsyncConnection, setback: timedelta) -> None:
    """Follow a setback of the database's clock: first sends and decisions are as old as before. Last sends were not
    later than now, and may still arrive for as long as if they had been made now.
    """
    await connection.execute(_DATE_BACK, {"setback": setback})
