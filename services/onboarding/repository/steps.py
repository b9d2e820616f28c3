"""Saga steps: when each was sent, by the database's clock, and what came of it.

`step_commits` has the writes of steps that are carried out as usual; here is what is written when they are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Double,
    Interval,
    Row,
    Text,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)

from libs.contracts.exact_json import decode, encode
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT, UUID_TYPE, seconds_since
from libs.providers.outcomes import Reason
from libs.providers.writing import Earlier, with_lost_history
from services.onboarding.repository.step_cases import (
    IS_THE_STEP,
    IS_UNKNOWN,
    MAY_BE_AT_PROVIDER,
)
from services.onboarding.repository.tenant_rows import json_of
from services.onboarding.tables import inbox, saga_steps

TIME_ORDERED = 7
"""The version of the UUIDs that are made anew for each request."""

_T = saga_steps.c
_IS_INTENDED = _T.state == "intended"
_NOW = func.clock_timestamp()
_EPOCH = cast(literal_column("'epoch'"), INSTANT)
"""Of 1970: where no life of the database is known that was trusted, what it lost may be as old as this. Ages and times
stay finite: PostgreSQL before 17 subtracts no others.
"""

_FIND = (
    select(
        _T.state,
        _T.resolution,
        cast(_T.result, Text).label("result"),
        # A row without `refusal_reason` is from before the column was: the code tells the reason.
        func.coalesce(
            _T.refusal_reason,
            case(
                (_T.refusal_code == Reason.ALREADY_LINKED.value, Reason.ALREADY_LINKED.value),
                else_=Reason.PROVIDER_REFUSED.value,
            ),
        ).label("refusal_reason"),
        _T.refusal_code,
        _T.last_sent_at,
        seconds_since(_T.resolved_at).label("resolved_seconds_ago"),
        # Older rows have `-infinity`. Without a last send it is not read.
        seconds_since(func.greatest(_T.first_sent_at, _EPOCH)).label("first_sent_seconds_ago"),
        seconds_since(_T.last_sent_at).label("last_sent_seconds_ago"),
        func.lost_history_seconds().label("lost_seconds"),
        func.least(func.lost_history_began_seconds(), seconds_since(_EPOCH)).label(
            "lost_began_seconds"
        ),
        # An attempt that only looked for lost sends leaves their time, before that of the intent.
        func.coalesce(_T.last_sent_at < _T.intended_at, true()).label("has_no_known_send"),
        _NOW.label("now"),
        select(seconds_since(inbox.c.accepted_at))
        .where(inbox.c.command_id == bindparam("by_command", type_=UUID_TYPE))
        .scalar_subquery()
        .label("accepted_seconds"),
    )
    .where(IS_THE_STEP)
    .with_for_update(key_share=True)
)
_ATTEMPT = (
    update(saga_steps)
    .where(IS_THE_STEP)
    .values(
        first_sent_at=func.coalesce(_T.first_sent_at, _NOW),
        # Not before the intent, also where the clock of the server that took over is behind: see `has_no_known_send`.
        last_sent_at=func.greatest(_NOW, _T.intended_at),
        last_attempt_at=_NOW,
        # Of a step that an operator found absent: its outcome is open again, and it is not purged.
        recorded_at=None,
        command_id=bindparam("by_command"),
    )
)
_AGO = bindparam("seconds_ago", type_=Double)
_TAKE_OVER = update(saga_steps).where(IS_THE_STEP).values(command_id=bindparam("by_command"))
_MAY_BE_OLDER = (
    update(saga_steps)
    .where(IS_THE_STEP)
    .values(
        first_sent_at=func.least(
            _T.first_sent_at, _NOW - func.make_interval(0, 0, 0, 0, 0, 0, _AGO, type_=Interval)
        )
    )
)
_SENT_LAST_AT = bindparam("sent_last_at", type_=INSTANT)
# A known send is not before the intent, a lost one is, also where the clock was set back since the time was read.
_NOT_SENT_AGAIN = (
    update(saga_steps)
    .where(IS_THE_STEP, _IS_INTENDED)
    .values(
        last_sent_at=case(
            (
                bindparam("is_known", type_=Boolean),
                func.greatest(func.least(_SENT_LAST_AT, _NOW), _T.intended_at),
            ),
            else_=func.least(_SENT_LAST_AT, _T.intended_at - timedelta(microseconds=1)),
        )
    )
)
_WITHDRAW = delete(saga_steps).where(IS_THE_STEP, _IS_INTENDED, _T.resolved_at.is_(None))
_WITHDRAW_RESOLVED = (
    update(saga_steps)
    .where(IS_THE_STEP, _IS_INTENDED)
    .values(first_sent_at=None, last_sent_at=None, recorded_at=_NOW)
)
_SET_DONE = (
    update(saga_steps)
    .where(IS_THE_STEP)
    .values(state="done", result=json_of("result_json"), recorded_at=_NOW)
)
_SET_REFUSED = (
    update(saga_steps)
    .where(IS_THE_STEP)
    .values(
        state="refused",
        refusal_reason=bindparam("reason"),
        refusal_code=bindparam("code"),
        recorded_at=_NOW,
    )
)
# Commands of one customer are driven one at a time: one with an order that has begun, and is not over while another is
# driven, is parked, or was, and comes last. The steps of an id that was used before, and is used again after its
# retention, are of an earlier command; the hour is for a clock that a failover has put back.
_IS_LEFT_BY_ITS_COMMAND = exists().where(
    inbox.c.command_id == _T.command_id,
    inbox.c.finished_at.is_(None),
    inbox.c.accepted_at < _T.last_attempt_at + timedelta(hours=1),
    or_(_IS_INTENDED, inbox.c.parked_at.is_not(None), inbox.c.ordering_key.is_not(None)),
)
_OF_ANOTHER_SAGA = select(
    exists().where(
        _T.customer_id == bindparam("customer_id"),
        _T.tenant == bindparam("tenant"),
        _T.saga_id != bindparam("of_saga"),
        or_(IS_UNKNOWN, _IS_LEFT_BY_ITS_COMMAND),
    )
)
_HAS_BEGUN = select(exists().where(IS_THE_STEP, MAY_BE_AT_PROVIDER))
_HAS_SAGA_BEGUN = select(
    exists().where(
        _T.saga_id == bindparam("of_saga"),
        _T.tenant == bindparam("tenant"),
        MAY_BE_AT_PROVIDER,
    )
)
_REFUSAL = select(_T.refusal_code).where(
    IS_THE_STEP,
    _T.tenant == bindparam("tenant"),
    or_(_T.state == "refused", _T.resolution == "refused"),
)
_COMMAND_OF = (
    select(_T.command_id)
    .where(
        _T.saga_id == bindparam("of_saga"),
        _T.tenant == bindparam("tenant"),
        _T.command_id.is_not(None),
    )
    .order_by(_T.last_attempt_at.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SagaName:
    """Which saga a step belongs to, and for whom it acts."""

    saga_id: UUID
    tenant: str
    customer_id: UUID
    operation: str


@dataclass(frozen=True, slots=True)
class Done:
    """The provider's answer is known.

    Args:
        is_recorded: False when an operator gave it and the saga has not taken it over yet.
    """

    result: Any
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class StepRefusal:
    """The provider refused; `words` as `Refused.words`, `is_recorded` as of `Done`."""

    reason: Reason
    words: str
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at the step begins with this commit.

    Args:
        earlier: sends before this attempt; None when certainly nothing was sent.
        last_sent_at: of the last one of these.
        has_known_send: this database knows of one of these.
        found_means_lost: this database may lack commits, and knows of no send. If the provider has a write that only a
            send can have made (`finds_only_sends`), a commit was lost, and a case is opened.
    """

    earlier: Earlier | None
    last_sent_at: datetime | None
    has_known_send: bool
    found_means_lost: bool


async def take_up(
    connection: AsyncConnection, saga: SagaName, name: str, *, command_id: UUID
) -> Done | StepRefusal | Begun:
    """Record another attempt at a step that was intended before, or find what came of the step.

    While the database may have gone back to an earlier state, a send may be missing in it, of before its present life.
    """
    step = {"of_saga": saga.saga_id, "of_name": name}
    row = (await connection.execute(_FIND, {**step, "by_command": command_id})).one()
    if row.state == "intended" and row.resolution in ("done", "refused"):
        # The decision is acted on: it is replaced only while the command that does so is not driven.
        await connection.execute(_TAKE_OVER, {**step, "by_command": command_id})
    if row.state == "done" or row.resolution == "done":
        return Done(decode(row.result), row.state == "done")
    if row.state == "refused" or row.resolution == "refused":
        return StepRefusal(Reason(row.refusal_reason), row.refusal_code, row.state == "refused")
    await connection.execute(_ATTEMPT, {**step, "by_command": command_id})
    known = None
    if row.last_sent_at is not None:
        known = Earlier(row.first_sent_seconds_ago, row.last_sent_seconds_ago)
    lost = None
    if not _is_absent_since(row):
        lost = lost_sends_of_step(
            command_id, row.lost_seconds, row.lost_began_seconds, row.accepted_seconds
        )
    if lost is not None:
        # It counts also when the history is no longer in doubt.
        await connection.execute(
            _MAY_BE_OLDER, {**step, "seconds_ago": lost.first_sent_seconds_ago}
        )
    # The sends of a step that an operator found absent were known, and may have arrived after all.
    has_no_known_send = row.has_no_known_send and row.resolution is None
    return begun(known, row.last_sent_at, lost, row.now, has_no_known_send=has_no_known_send)


def _is_absent_since(row: Row[Any]) -> bool:
    """Whether an operator has found that the provider holds nothing of the step, in this life of the database."""
    return (
        row.resolution == "absent"
        and row.last_sent_at is None
        and row.lost_seconds is not None
        and row.resolved_seconds_ago <= row.lost_seconds
    )


def lost_sends_of_step(
    command_id: UUID,
    lost_seconds: float | None,
    lost_began_seconds: float,
    accepted_seconds: float | None,
) -> Earlier | None:
    """What may have been sent in a history that the database lost; None: it lost none.

    A command without an Idempotency-Key has an id of its own, and is older than no send of it. One with a key may have
    been accepted, sent and lost before it was accepted now.
    """
    if lost_seconds is None:
        return None
    first = lost_began_seconds
    if command_id.version == TIME_ORDERED:
        first = min(first, accepted_seconds or 0.0)
    return Earlier(first, lost_seconds)


def begun(
    known: Earlier | None,
    last_sent_at: datetime | None,
    lost: Earlier | None,
    now: datetime,
    *,
    has_no_known_send: bool,
) -> Begun:
    """An attempt of now, after the sends that are known and those that may be lost."""
    earlier = with_lost_history(known, lost)
    if earlier is not None and (
        known is None or earlier.last_sent_seconds_ago < known.last_sent_seconds_ago
    ):
        last_sent_at = now - timedelta(seconds=earlier.last_sent_seconds_ago)
    return Begun(
        earlier,
        last_sent_at,
        has_known_send=not has_no_known_send,
        found_means_lost=lost is not None and has_no_known_send,
    )


async def not_sent_again(
    connection: AsyncConnection, saga: SagaName, name: str, begun: Begun
) -> None:
    """The attempt that was begun sent nothing that may still arrive: put the time of the last send back."""
    await connection.execute(
        _NOT_SENT_AGAIN,
        {
            "of_saga": saga.saga_id,
            "of_name": name,
            "sent_last_at": begun.last_sent_at,
            "is_known": begun.has_known_send,
        },
    )


async def withdraw(connection: AsyncConnection, saga: SagaName, name: str) -> None:
    """The first send was certainly not carried out. What an operator decided on the step before stays on record."""
    step = {"of_saga": saga.saga_id, "of_name": name}
    await connection.execute(_WITHDRAW, step)
    await connection.execute(_WITHDRAW_RESOLVED, step)


async def set_done(
    connection: AsyncConnection, saga: SagaName, name: str, result: Mapping[str, Any]
) -> None:
    """Record the provider's answer, as JSON values, in the transaction of what else is written with it."""
    await connection.execute(
        _SET_DONE,
        {"of_saga": saga.saga_id, "of_name": name, "result_json": encode(result).decode()},
    )


async def set_refused(
    connection: AsyncConnection, saga: SagaName, name: str, reason: Reason, words: str
) -> None:
    """Record that the provider refused the step.

    Args:
        words: see `Refused.words`.
    """
    await connection.execute(
        _SET_REFUSED,
        {
            "of_saga": saga.saga_id,
            "of_name": name,
            "reason": reason.value,
            "code": words,
        },
    )


async def is_another_unfinished(
    connection: AsyncConnection, tenant: str, customer_id: UUID, saga_id: UUID
) -> bool:
    """Whether a step of another saga of the customer has an outcome that is not known, or that it has not recorded."""
    found = await connection.execute(
        _OF_ANOTHER_SAGA, {"tenant": tenant, "customer_id": customer_id, "of_saga": saga_id}
    )
    return bool(found.scalar_one())


async def has_begun(connection: AsyncConnection, saga: SagaName, name: str) -> bool:
    """Whether a provider may know of the step."""
    step = {"of_saga": saga.saga_id, "of_name": name}
    found = await connection.execute(_HAS_BEGUN, step)
    return bool(found.scalar_one())


async def has_saga_begun(connection: AsyncConnection, tenant: str, saga_id: UUID) -> bool:
    """Whether a provider may know of a step of the saga."""
    found = await connection.execute(_HAS_SAGA_BEGUN, {"of_saga": saga_id, "tenant": tenant})
    return bool(found.scalar_one())


async def refusal_of(
    connection: AsyncConnection, tenant: str, saga_id: UUID, name: str
) -> str | None:
    """The words with which the provider, or an operator for it, refused the step; None: it is not refused."""
    step = {"of_saga": saga_id, "of_name": name, "tenant": tenant}
    words: str | None = (await connection.execute(_REFUSAL, step)).scalar_one_or_none()
    return words


async def command_of(connection: AsyncConnection, tenant: str, saga_id: UUID) -> UUID | None:
    """The command that attempted a step of the saga last."""
    found = await connection.execute(_COMMAND_OF, {"of_saga": saga_id, "tenant": tenant})
    command_id: UUID | None = found.scalar_one_or_none()
    return command_id
