"""The statements about the lives of this database's server: see `continuity`."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Interval,
    Text,
    and_,
    bindparam,
    case,
    except_,
    func,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, array, insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from libs.persistence.tables import database_life as table

_PRESENT = table.c.started_at == func.pg_postmaster_start_time()
_NO_RECORDS = array([], type_=Text)
_IS_OPEN = and_(table.c.missing_records != _NO_RECORDS, table.c.closed_at.is_(None))
# `first_seen_at` only ever becomes earlier. A life that was first seen while the clock was ahead counts from when the
# clock is seen right, or its check would wait until the time that was written. With an earlier time more records are
# compared, never fewer. A reading of the clock is replaced by a later one only: `clock_setbacks` detects by it that the
# clock was set back.
_SEEN = insert(table).values(
    started_at=func.pg_postmaster_start_time(),
    # `excluded` has it as it was before a wait for the lock of the row.
    process_ahead=bindparam("process_time", type_=INSTANT) - func.clock_timestamp(type_=INSTANT),
)
_SEE = _SEEN.on_conflict_do_update(
    index_elements=[table.c.started_at],
    set_={
        "first_seen_at": func.least(table.c.first_seen_at, func.clock_timestamp()),
        "last_seen_at": func.greatest(table.c.last_seen_at, func.clock_timestamp()),
        "process_ahead": case(
            (table.c.last_seen_at < func.clock_timestamp(), _SEEN.excluded.process_ahead),
            else_=table.c.process_ahead,
        ),
    },
)
_IS_DUE = table.c.report_due_at <= func.clock_timestamp()
_other, _trusted = table.alias("other"), table.alias("trusted")
_NEWEST_TRUSTED = (
    select(func.max(_trusted.c.first_seen_at))
    .where(_trusted.c.checked_at.is_not(None))
    .scalar_subquery()
)
_DOUBTED_SINCE = (
    select(func.min(_other.c.first_seen_at))
    .where(
        _other.c.checked_at.is_(None),
        or_(_NEWEST_TRUSTED.is_(None), _other.c.first_seen_at > _NEWEST_TRUSTED),
    )
    .scalar_subquery()
)
LIFE = select(
    table.c.started_at,
    table.c.first_seen_at,
    func.cardinality(table.c.missing_records).label("missing"),
    func.least(table.c.first_seen_at, _DOUBTED_SINCE).label("doubted_since"),
    table.c.checked_at.is_not(None).label("is_checked"),
    (table.c.first_seen_at + bindparam("transit", type_=Interval) <= func.clock_timestamp()).label(
        "is_settled"
    ),
    select(table.c.started_at).where(_IS_DUE).correlate(None).exists().label("is_report_due"),
    select(table.c.started_at)
    .where(table.c.put_off_by.is_not(None))
    .correlate(None)
    .exists()
    .label("are_commands_put_off"),
).where(_PRESENT)
# Replicas record what they found one after the other: what is newly missing is told by the statement's snapshot, which
# is then younger than what another replica has committed.
LOCK = (
    select(table.c.first_seen_at, func.cardinality(table.c.missing_records))
    .where(_PRESENT, table.c.started_at == bindparam("life"))
    .with_for_update()
)
_NEWLY_MISSING = except_(
    select(func.unnest(bindparam("missing", type_=ARRAY(Text))).label("record")),
    select(func.unnest(table.c.missing_records)),
).subquery()
_FOUND = select(
    func.coalesce(func.array_agg(_NEWLY_MISSING.c.record), _NO_RECORDS, type_=ARRAY(Text)).label(
        "records"
    )
).cte("found")
_RECORDS = select(_FOUND.c.records).scalar_subquery()
ADD_MISSING = (
    update(table)
    .where(_PRESENT)
    .values(
        missing_records=table.c.missing_records + _RECORDS,
        closed_at=case((_RECORDS == _NO_RECORDS, table.c.closed_at)),
        # With the case itself: this process may end before it has reported it.
        report_due_at=case(
            (_RECORDS == _NO_RECORDS, table.c.report_due_at), else_=func.clock_timestamp()
        ),
    )
    .returning(_RECORDS)
)
RECORD = ADD_MISSING.values(checked_at=func.clock_timestamp())
CLAIM_REPORT = (
    update(table)
    .where(_IS_DUE)
    .values(report_due_at=func.now() + bindparam("claim", type_=Interval))
    .returning(table.c.report_due_at)
)
REPORTED = (
    update(table).where(table.c.report_due_at == bindparam("claimed")).values(report_due_at=null())
)
OPEN = (
    select(table.c.started_at, table.c.first_seen_at, table.c.missing_records)
    .where(_IS_OPEN)
    .order_by(table.c.started_at)
)
_DECLARED = insert(table).values(
    started_at=func.pg_postmaster_start_time(), missing_records=bindparam("records")
)
DECLARE = _DECLARED.on_conflict_do_update(
    index_elements=[table.c.started_at],
    set_={
        "checked_at": null(),
        "missing_records": table.c.missing_records + _DECLARED.excluded.missing_records,
        "closed_at": null(),
        "closed_by": null(),
        "reason": null(),
    },
)
CLOSE = (
    update(table)
    .where(_IS_OPEN)
    .values(closed_at=func.clock_timestamp(), closed_by=bindparam("by"), reason=bindparam("why"))
    .returning(func.cardinality(table.c.missing_records))
)


async def see(connection: AsyncConnection) -> None:
    """Note that the present life is seen now. Its row is locked by this transaction, so that a statement that follows
    sees what a check has recorded meanwhile.
    """
    await connection.execute(_SEE, {"process_time": datetime.now(UTC)})
