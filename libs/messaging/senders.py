"""Who may send what over the broker, read off the tables of operations and events.

The broker enforces the same rules by permissions (`libs.messaging.permissions`) and proves the sender: it refuses a
message whose `user_id` is not the user of the connection. Consumers check each message, and each envelope of a batch,
once more, since the broker sees neither what a body says nor the further routing keys in the headers `CC` and `BCC`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from libs.contracts.events import EVENT_TYPES
from libs.contracts.table import OPERATIONS, SERVICES, operations_of
from libs.messaging.topology import EVENT_CONSUMERS, replies_queues

Senders = Mapping[str, frozenset[str]]
"""By operation. An operation that is not among them is taken from no sender: it does not exist, belongs to another
service, or is one that the service starts for itself.
"""

NO_SENDER: frozenset[str] = frozenset()

EMITTERS: Mapping[str, str] = {
    event.kind: event.emitter
    for event in EVENT_TYPES.values()
    if event.emitter not in EVENT_CONSUMERS
}
"""By kind of event, the only service that may publish it. What consumers of events emit themselves does not travel."""

EMITTING_SERVICES = frozenset(EMITTERS.values())

PARTICIPANTS: tuple[str, ...] = tuple(
    sorted({*SERVICES, *EMITTING_SERVICES, *(one for row in OPERATIONS for one in row.senders)})
)
"""Every service that uses the broker; each has a user of its name there."""

_REPLIES_QUEUES = {service: re.compile(replies_queues(service)) for service in PARTICIPANTS}

if any(EMITTERS.get(event.kind, event.emitter) != event.emitter for event in EVENT_TYPES.values()):
    raise RuntimeError("events of one kind have two emitters")


def senders_of_commands(service: str) -> Senders:
    return {row.name: frozenset(row.senders) for row in operations_of(service) if not row.is_query}


def senders_of_queries(service: str) -> Senders:
    return {row.name: frozenset(row.senders) for row in operations_of(service) if row.is_query}


def may_emit(sender: str | None, event_type: str) -> bool:
    """Also of a type that only a later release of the emitter knows, as long as its kind is known."""
    return sender is not None and EMITTERS.get(event_type.partition(".")[0]) == sender


def is_of_another(sender: str | None, event_type: str) -> bool:
    """Whether the type is of a kind that another service emits."""
    emitter = EMITTERS.get(event_type.partition(".")[0])
    return emitter is not None and emitter != sender


def commands_sent_by(service: str) -> tuple[str, ...]:
    return tuple(row.name for row in OPERATIONS if not row.is_query and service in row.senders)


def services_asked_by(service: str) -> tuple[str, ...]:
    """The services to which `service` sends queries."""
    rows = (row for row in OPERATIONS if row.is_query and service in row.senders)
    return tuple(dict.fromkeys(row.service for row in rows))


def askers_of(service: str) -> tuple[str, ...]:
    """The services to which it replies."""
    senders = (one for row in operations_of(service) for one in row.senders)
    return tuple(dict.fromkeys(senders))


def kinds_emitted_by(service: str) -> tuple[str, ...]:
    return tuple(kind for kind, emitter in EMITTERS.items() if emitter == service)


def owns_replies(sender: str | None, reply_to: str | None) -> bool:
    """Whether replies to `reply_to` reach their sender.

    A message must direct them neither to another service nor to a name by which the broker would refuse the reply: it
    ends the channel of the one who replies.
    """
    own = _REPLIES_QUEUES.get(sender or "")
    return reply_to is None or (own is not None and own.fullmatch(reply_to) is not None)
