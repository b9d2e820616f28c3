"""What the steps and new resources of a command are named by: its saga id.

    without an Idempotency-Key ── command id and message id: the command id comes once
    with one, the first time ──── command id alone
    with one, again ───────────── command id and message id: the key was no longer kept, and means something new

A command under a key that comes again after this database went back is named as it was before it was lost, so that the
providers hold what it did under the same idempotency keys. The message id is made by us for each request, and a
redelivery of the message has it again. `saga_origin` is kept for ever: providers may remember keys for ever. A request
that was told that nothing was started gives its place to the next one. A saga that exists
under command id and message id goes on under them.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from sqlalchemy import Text, bindparam, case, exists, not_, or_, select, union_all
from sqlalchemy.dialects.postgresql import insert

from libs.handling.commands import Drive
from libs.persistence.tables import UUID_TYPE
from services.onboarding.tables import customers, inbox, saga_origin, saga_steps

KEYED = 5
"""The version of the UUIDs that are derived from an Idempotency-Key."""
FIRST = "first"

_AS_ANOTHER = bindparam("as_another", type_=UUID_TYPE)
_MESSAGE = bindparam("message_id", type_=Text)
_WAS_BEGUN_AS_ANOTHER = or_(
    exists().where(customers.c.saga_id == _AS_ANOTHER),
    exists().where(saga_steps.c.saga_id == _AS_ANOTHER),
)
_FIRST_WAS_FORGOTTEN = exists().where(
    inbox.c.command_id == saga_origin.c.command_id,
    saga_origin.c.message_id == inbox.c.forgotten_messages.any_(),
)
# The row is as it should be: a drive that finds it so writes nothing.
_KNOWN = (
    select(saga_origin.c.message_id)
    .where(
        saga_origin.c.command_id == bindparam("command_id", type_=UUID_TYPE),
        not_(_FIRST_WAS_FORGOTTEN),
    )
    .cte("known")
)
_RECORDED = (
    insert(saga_origin)
    .from_select(
        ["command_id", "message_id"],
        select(
            bindparam("command_id", type_=UUID_TYPE),
            case((_WAS_BEGUN_AS_ANOTHER, ""), else_=_MESSAGE),
        ).where(not_(exists(select(_KNOWN)))),
    )
    # The drive has locked its command: a row that is there, and is not among the known ones, was forgotten.
    .on_conflict_do_update(index_elements=[saga_origin.c.command_id], set_={"message_id": _MESSAGE})
    .returning(saga_origin.c.message_id)
    .cte("recorded")
)
_ORIGIN_MESSAGE = union_all(select(_KNOWN.c.message_id), select(_RECORDED.c.message_id)).subquery()
_IS_FIRST = select(_ORIGIN_MESSAGE.c.message_id == _MESSAGE)


def saga_ids_of(command_id: UUID, message_id: str) -> tuple[UUID, UUID]:
    """The saga ids that a request may have: as the first one under its command id, and as any other."""
    return uuid5(command_id, FIRST), uuid5(command_id, message_id)


async def saga_id_of(drive: Drive) -> UUID:
    """The saga id of the command that is driven; the same at each of its drives."""
    command_id, message_id = drive.command_id, drive.lease.message_id
    as_first, as_another = saga_ids_of(command_id, message_id)
    if command_id.version != KEYED:
        return as_another
    async with drive.transaction() as connection:
        row = await connection.execute(
            _IS_FIRST,
            {"command_id": command_id, "message_id": message_id, "as_another": as_another},
        )
        is_first = bool(row.scalar_one())
    return as_first if is_first else as_another
