"""Saga steps past their retention: which of them may go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    Integer,
    Interval,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    func,
    not_,
    select,
    tuple_,
)

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.onboarding.repository.step_cases import is_refused_compensation
from services.onboarding.states import FINAL
from services.onboarding.tables import customers, inbox, saga_steps

PURGE_BATCH = 1000

_T = saga_steps.c


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Where a step stands in the order in which outcomes were recorded."""

    recorded_at: datetime
    saga_id: UUID
    name: str


FIRST = StepPlace(datetime.min.replace(tzinfo=UTC), UUID(int=0), "")
"""Before every step."""


@dataclass(frozen=True, slots=True)
class StepsPurged:
    """What one batch of `purge` did.

    Args:
        deleted: how many.
        last: the last that was looked at, None when there was none.
    """

    deleted: int
    last: StepPlace | None


_IS_OLD = _T.recorded_at < EARLIER_NOW - bindparam("age", type_=Interval)
_ORDERING_KEY = _T.tenant + "/" + cast(_T.customer_id, Text)
_looked_at = (
    select(_T.recorded_at, _T.saga_id, _T.name, _ORDERING_KEY.label("ordering_key"))
    .where(
        _IS_OLD,
        tuple_(_T.recorded_at, _T.saga_id, _T.name)
        > tuple_(
            bindparam("recorded_after", type_=INSTANT),
            bindparam("after_saga", type_=UUID_TYPE),
            bindparam("after_name", type_=Text),
        ),
    )
    .order_by(_T.recorded_at, _T.saga_id, _T.name)
    # A literal: of a parameter, a generic plan expects a tenth of the table, and reads all of it.
    .limit(bindparam("batch", type_=Integer, literal_execute=True))
    .cte("looked_at")
)
# Whose opening may still be carried on.
_IS_UNOPENED = exists().where(
    customers.c.customer_id == _T.customer_id,
    customers.c.core_id.is_(None),
    customers.c.status.not_in([status.value for status in FINAL]),
)
# With NOT IN, PostgreSQL reads these lists once for a batch. With NOT EXISTS, it compares each step with each entry of
# them where its statistics are of a time without any. They are of the batch alone: a list that it expects to be longer
# than some 80,000 would be read anew for each step.
_WITH_OPEN_COMMANDS = select(inbox.c.ordering_key).where(
    inbox.c.finished_at.is_(None),
    is_chosen(inbox.c.ordering_key, select(_looked_at.c.ordering_key)),
)
_refused = saga_steps.alias("refused")
# What their other steps made stays at the provider: by these it is known whose it is (`holders.other_holder`).
_NOT_TAKEN_BACK = select(_refused.c.saga_id).where(
    is_refused_compensation(_refused),
    is_chosen(_refused.c.saga_id, select(_looked_at.c.saga_id)),
)
_past = (
    select(_T.saga_id, _T.name)
    .join(_looked_at, (_T.saga_id == _looked_at.c.saga_id) & (_T.name == _looked_at.c.name))
    .where(
        # Checked again of a row that was changed meanwhile. Another outcome has another time.
        _T.recorded_at == _looked_at.c.recorded_at,
        _T.saga_id.not_in(_NOT_TAKEN_BACK),
        not_(_IS_UNOPENED),
        _ORDERING_KEY.not_in(_WITH_OPEN_COMMANDS),
    )
    .with_for_update(of=saga_steps, skip_locked=True)
    # Carried out once: see `libs.persistence.chosen_rows`.
    .cte("past")
)
_deleted = (
    delete(saga_steps)
    .where(_T.saga_id == _past.c.saga_id, _T.name == _past.c.name)
    .returning(_T.saga_id)
    .cte("deleted")
)
_PURGE = (
    select(
        select(func.count()).select_from(_deleted).scalar_subquery().label("deleted"),
        _looked_at.c.recorded_at,
        _looked_at.c.saga_id,
        _looked_at.c.name,
    )
    .order_by(
        _looked_at.c.recorded_at.desc(), _looked_at.c.saga_id.desc(), _looked_at.c.name.desc()
    )
    .limit(1)
)


async def purge(connection: AsyncConnection, *, days: int, after: StepPlace = FIRST) -> StepsPurged:
    """Look at a batch of steps whose outcome was recorded more than `days` ago by both clocks, in this order, and
    delete those that may go.

    Kept are those of a saga that may still run again, which is one of a customer that is pending or has a command open;
    and those of a saga with a refused compensation that no operator has seen to.
    """
    values = {
        "age": timedelta(days=days),
        "batch": PURGE_BATCH,
        "recorded_after": after.recorded_at,
        "after_saga": after.saga_id,
        "after_name": after.name,
    }
    row = (await connection.execute(_PURGE, values)).first()
    if row is None:
        return StepsPurged(0, None)
    return StepsPurged(row.deleted, StepPlace(row.recorded_at, row.saga_id, row.name))
