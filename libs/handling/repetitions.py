"""Whether a request repeats the one that began the command with its id (interface §3)."""

from __future__ import annotations

from typing import Any

from libs.contracts.errors import Abandoned, IdempotencyKeyReused
from libs.contracts.exact_json import decode
from libs.contracts.operation import Operation
from libs.contracts.table import BY_NAME
from libs.handling.stored_commands import reply_of
from libs.messaging.envelope import Envelope
from libs.persistence.inbox_acceptance import KnownCommand
from libs.persistence.sealing import DIGEST_BYTES

NOT_COMPARABLE = (
    "This Idempotency-Key was used before. Whether it was used with this body cannot be told any more: the key by which"
    " the gateway compares bodies was replaced since."
)


def refusal_of(envelope: Envelope, known: KnownCommand) -> IdempotencyKeyReused | None:
    """The answer to a request that does not repeat the one that began the command; None for one that does.

    Bodies are compared by their keyed hashes. Where the gateway no longer has the lookup key of the stored hash, the
    contents are compared. What is in the path needs no comparison: the command id is made of it. A request whose
    content cannot be compared is refused, unless an operator abandoned the command: that reply tells nothing of a body.
    """
    if known.body_hash in (envelope.body_hash, *envelope.earlier_body_hashes):
        return None
    if not _is_by_absent_key(envelope, known):
        return IdempotencyKeyReused()
    operation = BY_NAME.get(envelope.operation)
    if operation is not None and operation.command.model_fields.keys() <= {*operation.path_fields}:
        return None
    if operation is None or operation.command_shape or not known.body:
        return None if _is_abandoned(known) else IdempotencyKeyReused(NOT_COMPARABLE)
    is_same = _content(operation, known.body) == _content(operation, bytes(envelope.body))
    return None if is_same else IdempotencyKeyReused()


def _is_by_absent_key(envelope: Envelope, known: KnownCommand) -> bool:
    if known.body_hash is None or envelope.body_hash is None:
        return False
    arriving = (envelope.body_hash, *envelope.earlier_body_hashes)
    return _key_of(known.body_hash) not in map(_key_of, arriving)


def _is_abandoned(known: KnownCommand) -> bool:
    reply = reply_of(known.reply) if known.reply is not None else None
    return reply is not None and reply.error is not None and reply.error.code == Abandoned.code


def _key_of(body_hash: str) -> str:
    """What stands before the digest: the id of the lookup key. All of it is in hexadecimal digits."""
    return body_hash[: -2 * DIGEST_BYTES]


def _content(operation: Operation, body: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = decode(body)
    return {name: value for name, value in fields.items() if name not in operation.path_fields}
