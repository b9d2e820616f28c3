"""The sealed values of a service: those in its own tables, and those of messages that stand in its inbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Table

from libs.contracts.sensitive import SensitiveShape
from libs.contracts.table import BY_NAME
from libs.messaging.envelope import command_context, operation_of_context, reply_context
from libs.messaging.message_sealer import other_party
from libs.persistence.resealing import SealedColumn
from libs.persistence.sealing import Keyring


@dataclass(frozen=True, slots=True)
class Renewed:
    """What one step over the digests did.

    Args:
        left: values that are found by an older key only, by its id.
        last: where the next step begins, as text; None at the end.
    """

    left: Counter[str]
    last: str | None


@dataclass(frozen=True, slots=True)
class Digests:
    """Keyed digests by which sealed values are found.

    Args:
        variable: sets the lookup keys.
        key_ids: the first one is that of the present key.
        renew: makes a digest by the present key for each value, and removes those whose key is off the ring. Takes the
            `last` of the step before, and until when the step may go on, by the loop's clock. Raises NotAPlace for a
            `last` that is none.
    """

    variable: str
    key_ids: Sequence[str]
    renew: Callable[[str | None, float], Awaitable[Renewed]]


@dataclass(frozen=True, slots=True)
class SealedStore:
    columns: Sequence[SealedColumn]
    rings: Mapping[str, Keyring]
    """By the variable that sets them."""
    digests: Digests | None = None


def inbox_columns(service: str, inbox: Table, rings: Mapping[str, str]) -> tuple[SealedColumn, ...]:
    """The inbox's columns with sealed values: the bodies of commands, and the replies to them.

    Args:
        rings: by peer, the name of the ring that is shared with it.
    """

    def ring(context: str) -> str:
        operation = BY_NAME.get(operation_of_context(context))
        return rings.get(other_party(service, operation), "") if operation else ""

    def of_command(row: Row[Any]) -> str:
        return _context(row, "command")

    def of_reply(row: Row[Any]) -> str:
        return _context(row, "reply")

    def in_command(row: Row[Any]) -> SensitiveShape:
        operation = BY_NAME.get(row.operation)
        return operation.command_shape if operation else SensitiveShape()

    def in_reply(row: Row[Any]) -> SensitiveShape:
        operation = BY_NAME.get(row.operation)
        return operation.reply_shape if operation else SensitiveShape()

    columns = inbox.c
    return (
        SealedColumn(columns.body, of_command, ring, shape=in_command, also=(columns.operation,)),
        SealedColumn(
            columns.reply,
            of_reply,
            ring,
            shape=in_reply,
            within=("result", "data"),
            also=(columns.operation,),
        ),
    )


def _context(row: Row[Any], part: str) -> str:
    operation = BY_NAME.get(row.operation)
    if operation is None:  # of the service itself: it travels nowhere
        return f"{row.operation}/{row.command_id}/{part}"
    of = command_context if part == "command" else reply_context
    return of(operation, str(row.command_id))
