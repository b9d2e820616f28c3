"""Sealing what travels between two services with the key ring that those two share, and no other service has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from libs.contracts.operation import Operation
from libs.contracts.sensitive import Sealer
from libs.contracts.table import BY_NAME, OPERATIONS
from libs.messaging.envelope import operation_of_context


def parties_of(operation: Operation) -> tuple[str, str]:
    """The one service that sends an operation with sensitive fields, and the one that answers it."""
    [sender] = operation.senders
    return sender, operation.service


PAIRS: frozenset[tuple[str, str]] = frozenset(
    parties_of(operation)
    for operation in OPERATIONS
    if operation.command_shape or operation.reply_shape
)
"""The services between which sensitive fields travel."""


def peers_of(service: str) -> tuple[str, ...]:
    """The services with which this one shares a key ring."""
    return tuple(sorted(peer for pair in PAIRS if service in pair for peer in {*pair} - {service}))


def other_party(service: str, operation: Operation) -> str:
    sender, answering = parties_of(operation)
    return answering if sender == service else sender


class Ring(Sealer, Protocol):
    """A key ring."""

    def require_key(self, token: str) -> str:
        """The id of the key that the token names. Raises what `open` raises where that is not on the ring."""


class MessageSealer:
    """The sealer of one service's messages. The operation in the context tells the peer, whose ring is used.

    Args:
        rings: by peer.
    """

    def __init__(self, service: str, rings: Mapping[str, Ring]) -> None:
        self._service = service
        self._rings = rings

    def seal(self, plaintext: str, context: str) -> str:
        return self._ring(context).seal(plaintext, context)

    def open(self, token: str, context: str) -> str:
        return self._ring(context).open(token, context)

    def require_key(self, token: str, context: str) -> None:
        """Raises what `open` raises where the key that the token names is not on the ring."""
        self._ring(context).require_key(token)

    def _ring(self, context: str) -> Ring:
        return self._rings[other_party(self._service, BY_NAME[operation_of_context(context)])]
