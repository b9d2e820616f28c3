"""Replaying dead letters: the service that owns the queue accepts the message anew, as if it had just arrived.

Nothing is published: only its sender may publish a message, and the sender does not know that it died. A service with a
dead queue has a function that accepts its letters (`libs.handling.operating.letters`).
"""

from __future__ import annotations

from libs.contracts.table import BY_NAME
from libs.handling.acceptance import (
    Ordering,
    Recorded,
    arriving,
    is_fault_of_command,
    new_command,
)
from libs.handling.operating.letters import Append
from libs.handling.payloads import require_keys
from libs.handling.repetitions import refusal_of
from libs.messaging.dead_letters import DeadLetter, NotReplayable
from libs.messaging.envelope import Envelope
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.senders import NO_SENDER, senders_of_commands
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand
from libs.persistence.sealing import CannotOpen


async def accept_command_anew(
    database: Database,
    letter: DeadLetter,
    append: Append,
    service: str,
    sealer: MessageSealer,
    *,
    ordering: Ordering | None = None,
    unordered: frozenset[str] = frozenset(),
) -> None:
    """Record a command, which the service then drives. Its caller is not answered, since none waits for it any more.

    The command is never purged: where the operator's call is cut short, its letter stays and may be replayed weeks
    later.

    Args:
        append: what the transaction ends with.
        ordering, unordered: as of `libs.handling.commands.run_commands`.

    Raises:
        NotReplayable
    """
    envelope = letter.envelope
    if envelope is None:
        raise NotReplayable("this release cannot read it")
    if letter.sender not in senders_of_commands(service).get(envelope.operation, NO_SENDER):
        raise NotReplayable(f"{letter.sender or 'no sender'} may not send {envelope.operation}")
    try:
        require_keys(BY_NAME[envelope.operation], envelope.id, bytes(envelope.body), sealer)
    except CannotOpen as error:
        raise NotReplayable(f"a sealed value of it cannot be opened: {error}") from error
    async with database.transaction() as connection:
        try:
            recorded = await _accept(
                connection, envelope, None if envelope.operation in unordered else ordering
            )
        except Exception as error:
            if not is_fault_of_command(error):
                raise
            raise NotReplayable(f"it can never be recorded ({type(error).__name__})") from error
        if (
            isinstance(recorded, KnownCommand)
            and not recorded.is_redelivery
            and refusal_of(envelope, recorded) is not None
        ):
            raise NotReplayable(
                "another request was accepted under its Idempotency-Key, or one with which it cannot be compared any"
                " more"
            )
        await append(connection)


async def _accept(
    connection: AsyncConnection, envelope: Envelope, ordering: Ordering | None
) -> Recorded:
    command = new_command(envelope, None, keep_for_ever=True)
    key = await ordering(connection, arriving(command, envelope)) if ordering is not None else None
    return await inbox_acceptance.accept(connection, command, key, lease=False)
