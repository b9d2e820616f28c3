"""Messages as they travel: envelopes of commands and queries, and replies. JSON, sensitive fields sealed.

Fields that this release does not know are ignored, so that services of two releases understand each other while one is
rolled out. A change that must not be ignored raises `VERSION`; an envelope of a later version is refused:

| message | what is done |
|---|---|
| command | dead-lettered, logged and counted; replay it once every replica has the later release |
| query | answered with `unavailable`, logged and counted |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from libs.contracts.errors import BanksideError, ErrorDetail, Invalid, error_from_wire
from libs.contracts.exact_json import encoder, own_number
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal

VERSION = 1
"""The latest version of envelopes, and of the headers of events, that this release understands."""


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command or query.

    Args:
        id: the command id, the same for every request under one Idempotency-Key.
        message_id: of this one request, made by its sender: a redelivery has the same, a second request another. The
            reply is matched by it.
        request_id: for logs and the caller; the caller may have chosen it, so it proves nothing.
        deadline: until when the sender waits, in Unix seconds.
        body_hash: by it a request is known to repeat an earlier one under its key.
        version: see `VERSION`.
        earlier_body_hashes: by lookup keys that are being replaced.
        trace: the span that sent it, as `libs.tracing` has it; None where no trace is recorded.
    """

    id: str
    message_id: str
    request_id: str
    operation: str
    principal: Principal
    deadline: float
    body: msgspec.Raw
    body_hash: str | None = None
    version: int = 1
    earlier_body_hashes: tuple[str, ...] = ()
    trace: str | None = None


class EnvelopeHead(msgspec.Struct, frozen=True):
    """What the envelopes of every version have."""

    id: str
    message_id: str
    version: int = 1


class WireError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error of the tree in libs.contracts.errors."""

    code: str
    detail: str | None = None
    extra: dict[str, Any] = {}
    errors: list[ErrorDetail] | None = None

    @classmethod
    def of(cls, error: BanksideError) -> WireError:
        if isinstance(error, Invalid):
            return cls(error.code, errors=error.errors)
        return cls(error.code, error.detail, error.extra)

    def to_error(self) -> BanksideError:
        return error_from_wire(self.code, self.detail, self.extra, self.errors)


NO_RESULT = msgspec.Raw()
"""Empty, and false. Not None: msgspec decodes a union with Raw as if Raw were not in it."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one envelope: `result` is an encoded object, or there is an `error`. `to` is the envelope's
    message id.
    """

    id: str
    to: str
    result: msgspec.Raw = NO_RESULT
    error: WireError | None = None
    request_id: str | None = None
    """Of the request that an error answered first: a replay shows the same body."""
    replayed: bool = False
    message: str | None = None
    """In place of that of the row, for a result."""


class NotAnEnvelope(Exception):
    """The message cannot be decoded; it belongs in the dead queue."""


class NewerEnvelope(NotAnEnvelope):
    """The envelopes are of a version that only a later release understands."""

    def __init__(self, heads: Sequence[EnvelopeHead]) -> None:
        super().__init__(f"version {max(head.version for head in heads)}")
        self.heads = tuple(heads)


_envelope = msgspec.json.Decoder(Envelope)
_head = msgspec.json.Decoder(EnvelopeHead)
_heads = msgspec.json.Decoder(list[EnvelopeHead])
_envelopes = msgspec.json.Decoder(list[Envelope])
_replies = msgspec.json.Decoder(list[Reply], float_hook=own_number)
_reply = msgspec.json.Decoder(Reply, float_hook=own_number)

_UNDECODABLE = (msgspec.MsgspecError, ValueError, RecursionError)

encode = encoder.encode


def decode_command(data: bytes) -> Envelope:
    """Raises NotAnEnvelope, or NewerEnvelope."""
    try:
        envelope = _envelope.decode(data)
    except _UNDECODABLE as error:
        _refuse_newer(_head_or_none(data))
        raise NotAnEnvelope(type(error).__name__) from error
    _refuse_newer([envelope])
    return envelope


def decode_queries(data: bytes) -> list[Envelope]:
    """The envelopes of one message, all from one sender. Raises NotAnEnvelope, or NewerEnvelope."""
    try:
        envelopes = _envelopes.decode(data)
    except _UNDECODABLE as error:
        _refuse_newer(_heads_or_none(data))
        raise NotAnEnvelope(type(error).__name__) from error
    _refuse_newer(envelopes)
    return envelopes


def _refuse_newer(heads: Sequence[EnvelopeHead | Envelope]) -> None:
    if any(head.version > VERSION for head in heads):
        raise NewerEnvelope(
            [EnvelopeHead(head.id, head.message_id, head.version) for head in heads]
        )


def _head_or_none(data: bytes) -> list[EnvelopeHead]:
    try:
        return [_head.decode(data)]
    except _UNDECODABLE:
        return []


def _heads_or_none(data: bytes) -> list[EnvelopeHead]:
    try:
        return _heads.decode(data)
    except _UNDECODABLE:
        return []


def decode_replies(data: bytes) -> list[Reply]:
    """Raises NotAnEnvelope."""
    try:
        return _replies.decode(data)
    except _UNDECODABLE as error:
        raise NotAnEnvelope(type(error).__name__) from error


def decode_reply(data: bytes) -> Reply:
    """One reply, as stored in an inbox."""
    return _reply.decode(data)


def raw(value: Any) -> msgspec.Raw:
    """`value` encoded, to be put into an envelope or reply as it is."""
    return msgspec.Raw(encode(value))


def command_context(operation: Operation, command_id: str) -> str:
    """What the sealed fields of a command are bound to."""
    return f"{operation.name}/{command_id}/command"


def reply_context(operation: Operation, command_id: str) -> str:
    """What the sealed fields of a reply are bound to."""
    return f"{operation.name}/{command_id}/reply"


def operation_of_context(context: str) -> str:
    """The operation of a command's or a reply's context."""
    return context.partition("/")[0]
