"""Replaying dead letters: the service that owns the queue accepts the message anew, as if it had just arrived.

Nothing is published: only its sender may publish a message, and the sender does not know that it died. A service with a
dead queue has a function that accepts its letters (`libs.handling.operating.letters`).
"""

from __future__ import annotations

from libs.handling.acceptance import Ordering, arriving, is_another_request, new_command
from libs.handling.operating.letters import Append
from libs.messaging.dead_letters import DeadLetter, NotReplayable
from libs.messaging.senders import NO_SENDER, senders_of_commands
from libs.persistence import inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand


async def accept_command_anew(
    database: Database,
    letter: DeadLetter,
    append: Append,
    service: str,
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
    command = new_command(envelope, None, keep_for_ever=True)
    async with database.transaction() as connection:
        key = None
        if ordering is not None and envelope.operation not in unordered:
            key = await ordering(connection, arriving(command, envelope))
        known = await inbox_acceptance.accept(connection, command, key, lease=False)
        if (
            isinstance(known, KnownCommand)
            and not known.is_redelivery
            and is_another_request(envelope, known)
        ):
            raise NotReplayable("another request was accepted under its Idempotency-Key")
        await append(connection)
