"""The payloads of commands and queries: bodies are opened and validated, results become replies.

Sensitive fields are opened and sealed here: handlers see them in plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.model import OF_ANY_RELEASE, Command, build_validators
from libs.contracts.operation import Operation
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer, open_payload, seal_payload
from libs.contracts.table import operations_of
from libs.handling.metrics import INTERNAL_ERRORS
from libs.messaging.envelope import Reply, command_context, raw, reply_context
from libs.messaging.message_sealer import MessageSealer


def open_body(operation: Operation, command_id: str, body: bytes, sealer: Sealer) -> Command:
    """The command or query in the body of an envelope, opened and validated; fields of a newer sender are ignored."""
    payload = decode(body)
    opened = open_payload(
        operation.command_shape, payload, sealer, command_context(operation, command_id)
    )
    command: Command = operation.command.model_validate(
        opened, extra="ignore", context={OF_ANY_RELEASE: True}
    )
    return command


def require_keys(operation: Operation, command_id: str, body: bytes, sealer: MessageSealer) -> None:
    """Check that the keys by which the body's values are sealed are there, without opening them.

    Raises:
        CannotOpen: one is not on its ring, or a value is not sealed. What else is wrong with a body is told as it is
            opened.
    """
    if not operation.command_shape:
        return

    def require(token: str, context: str) -> str:
        sealer.require_key(token, context)
        return token

    with suppress(NotExactJson):
        context = command_context(operation, command_id)
        operation.command_shape.apply(decode(body), require, f"{context}#")


def success(
    operation: Operation, envelope_id: str, to: str, result: Result, sealer: Sealer
) -> Reply:
    """The reply that carries a result, its sensitive fields sealed."""
    payload = result.payload(operation)
    if operation.reply_shape:
        context = reply_context(operation, envelope_id)
        payload["data"] = seal_payload(operation.reply_shape, payload["data"], sealer, context)
    return Reply(id=envelope_id, to=to, result=raw(payload), message=result.message)


def prepare(service: str, names: Iterable[str], *, queries: bool) -> None:
    """Build the counters of the service's rows, and the validators of those that are not for operators, who may wait.

    Raises RuntimeError when a row lacks a handler: such a process must not start.
    """
    rows = [row for row in operations_of(service) if row.is_query == queries]
    missing = sorted({row.name for row in rows} - set(names))
    if missing:
        raise RuntimeError(f"{service} has no handler for {', '.join(missing)}")
    for row in rows:
        INTERNAL_ERRORS.labels(row.name)
        if not row.is_for_operators:
            build_validators((row.command, row.reply))
