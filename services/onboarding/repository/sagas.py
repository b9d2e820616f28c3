"""What the steps and new resources of a command are named by: its saga id.

    without an Idempotency-Key ── command id and message id: the command id comes once
    with one, the first time ──── command id alone
    with one, again ───────────── command id and message id: the key was no longer kept, and means something new

A command under a key that comes again after this database went back is named as it was before it was lost, so that the
providers hold what it did under the same idempotency keys. The message id is made by us for each request, and a
redelivery of the message has it again. `saga_origin` is kept for ever: providers may remember keys for ever. A request
that was told that nothing was started gives its place to the next one. What a process of the release before has begun
under command id and message id goes on under them.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from sqlalchemy import text

from libs.handling.commands import Drive

KEYED = 5
"""The version of the UUIDs that are derived from an Idempotency-Key."""
FIRST = "first"

_ORIGIN = text(
    """
    INSERT INTO saga_origin (command_id, message_id)
    SELECT :command_id, CASE WHEN EXISTS (SELECT FROM customers WHERE saga_id = :as_another)
        OR EXISTS (SELECT FROM saga_steps WHERE saga_id = :as_another) THEN '' ELSE CAST(:message_id AS text) END
    ON CONFLICT (command_id) DO UPDATE SET message_id = CASE
        WHEN EXISTS (SELECT FROM inbox i WHERE i.command_id = saga_origin.command_id
            AND saga_origin.message_id = ANY (i.forgotten_messages))
        THEN CAST(:message_id AS text) ELSE saga_origin.message_id END
    RETURNING message_id = :message_id AS is_first
    """
)


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
            _ORIGIN,
            {"command_id": command_id, "message_id": message_id, "as_another": as_another},
        )
        is_first = bool(row.scalar_one())
    return as_first if is_first else as_another
