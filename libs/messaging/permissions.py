"""What each service may do at the broker: regular expressions of RabbitMQ, generated from the tables.

| permission | of a service |
|---|---|
| configure | its own queues |
| write | the exchanges to which it publishes, and its own queues, to bind them |
| read | its own queues, and the exchanges to which it binds them |
| topic, write | on an exchange, the routing keys of what it sends |
| topic, read | on an exchange, the keys by which it binds its queues |

RabbitMQ asks for `write` on the exchange of dead letters and `read` on the queue from the one who declares a queue with
a dead-letter exchange. A user without a topic permission on an exchange could use any key there, so every exchange that
a service may write to or read has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from libs.contracts.table import operations_of
from libs.messaging.senders import (
    askers_of,
    commands_sent_by,
    kinds_emitted_by,
    services_asked_by,
)
from libs.messaging.topology import (
    COMMANDS,
    DEAD,
    EVENT_CONSUMERS,
    EVENTS,
    EVERY_EVENT,
    PROBES,
    QUERIES,
    REPLIES,
    consumed_queues,
    dead_queue,
    durable_queues,
    queues_of,
    replies_queues,
)

NOTHING = "^$"


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """Regular expressions over routing keys."""

    write: str
    read: str


@dataclass(frozen=True, slots=True)
class Permissions:
    """Regular expressions over names of queues and exchanges; `topics` by exchange."""

    configure: str
    write: str
    read: str
    topics: Mapping[str, TopicPermission]


def permissions_of(service: str) -> Permissions:
    rows = operations_of(service)
    queries = any(row.is_query for row in rows)
    events = service in EVENT_CONSUMERS
    dead = [*map(dead_queue, durable_queues(service))]
    own = [*map(re.escape, queues_of(service))]
    asks = bool(services_asked_by(service) or commands_sent_by(service))
    replies = replies_queues(service)
    probed = _any_of(re.escape(name) for name in consumed_queues(service))
    if asks:
        own.append(replies)
    topics = {
        COMMANDS: TopicPermission(
            _any_of(map(re.escape, commands_sent_by(service))),
            _any_of(re.escape(row.name) for row in rows if not row.is_query),
        ),
        QUERIES: TopicPermission(
            _any_of(map(re.escape, services_asked_by(service))),
            _any_of([re.escape(service)] if queries else []),
        ),
        EVENTS: TopicPermission(
            _any_of(rf"{re.escape(kind)}\.[a-z_]+" for kind in kinds_emitted_by(service)),
            _any_of([EVERY_EVENT] if events else []),
        ),
        REPLIES: TopicPermission(
            _any_of(map(replies_queues, askers_of(service))),
            _any_of([replies] if asks else []),
        ),
        DEAD: TopicPermission(_any_of(map(re.escape, dead)), _any_of(map(re.escape, dead))),
        PROBES: TopicPermission(probed, probed),
    }
    written = [re.escape(name) for name, topic in topics.items() if topic.write != NOTHING]
    bound = [re.escape(name) for name, topic in topics.items() if topic.read != NOTHING]
    return Permissions(
        configure=_any_of(own),
        write=_any_of([*written, *own]),
        read=_any_of([*bound, *own]),
        topics={
            name: topic
            for name, topic in topics.items()
            if topic != TopicPermission(NOTHING, NOTHING)
        },
    )


def _any_of(patterns: Iterable[str]) -> str:
    """A regular expression for exactly these, in an order that does not depend on the tables'."""
    found = sorted(patterns)
    return f"^({'|'.join(found)})$" if found else NOTHING
