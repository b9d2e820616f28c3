"""Users, permissions, exchanges and the queues of services that take every event, as RabbitMQ imports them: read off
the tables of operations and events.

    python -m deploy.rabbitmq.definitions >deploy/rabbitmq/definitions.json

writes the template that containers start with: `start` there puts the passwords in. `make up` and the tests make theirs
from the same function. A node imports its document at every start; what is there already stays as it is, passwords and
permissions are replaced. For a broker that runs elsewhere: `rabbitmqctl import_definitions FILE`.

An event that any queue has taken leaves its outbox. So the queue of a service that takes every event comes with the
exchange: no event passes the service by while a consumer of the operator's already has its queue. A command goes to one
queue, and is returned to its sender while that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from libs.messaging.permissions import permissions_of
from libs.messaging.senders import PARTICIPANTS
from libs.messaging.topology import (
    DEAD,
    EVENT_CONSUMERS,
    EVENTS,
    EVERY_EVENT,
    EXCHANGES,
    dead_queue,
    durable_queue_arguments,
    events_queue,
)

ADMINISTRATOR = "bankside"
"""For operators: no service has its password."""


def password_variable(user: str) -> str:
    """The variable of the environment that holds the password of a service's user in containers."""
    return f"BANKSIDE_{user.upper()}_AMQP_PASSWORD"


def users(passwords: Mapping[str, str]) -> list[dict[str, str]]:
    """The services' users, by their passwords."""
    return [{"name": one, "password": passwords[one], "tags": ""} for one in PARTICIPANTS]


def administrator(password: str, tags: Sequence[str] = ("administrator",)) -> dict[str, str]:
    return {"name": ADMINISTRATOR, "password": password, "tags": ",".join(tags)}


def administrator_permissions(vhosts: Sequence[str]) -> list[dict[str, str]]:
    everything = dict.fromkeys(("configure", "write", "read"), ".*")
    return [{"user": ADMINISTRATOR, "vhost": vhost, **everything} for vhost in vhosts]


def definitions(vhosts: Sequence[str]) -> dict[str, Any]:
    """Virtual hosts with their exchanges and queues, and what each service may do there."""
    permissions, topics = [], []
    for vhost in vhosts:
        for service in PARTICIPANTS:
            allowed = permissions_of(service)
            whom = {"user": service, "vhost": vhost}
            permissions.append(
                {
                    **whom,
                    "configure": allowed.configure,
                    "write": allowed.write,
                    "read": allowed.read,
                }
            )
            topics += [
                {**whom, "exchange": exchange, "write": topic.write, "read": topic.read}
                for exchange, topic in allowed.topics.items()
            ]
    return {
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "permissions": permissions,
        "topic_permissions": topics,
        "exchanges": [_exchange(name, vhost) for vhost in vhosts for name in EXCHANGES],
        "queues": [
            queue(name, vhost, arguments)
            for vhost in vhosts
            for service in EVENT_CONSUMERS
            for name, arguments in durable_queue_arguments(events_queue(service)).items()
        ],
        "bindings": [
            binding(exchange, name, key, vhost)
            for vhost in vhosts
            for service in EVENT_CONSUMERS
            for exchange, name, key in _bindings(events_queue(service))
        ],
    }


def queue(name: str, vhost: str, arguments: Mapping[str, str | int]) -> dict[str, Any]:
    return {
        "name": name,
        "vhost": vhost,
        "durable": True,
        "auto_delete": False,
        "arguments": {**arguments},
    }


def binding(exchange: str, name: str, routing_key: str, vhost: str) -> dict[str, Any]:
    """Of a queue to an exchange."""
    return {
        "source": exchange,
        "vhost": vhost,
        "destination": name,
        "destination_type": "queue",
        "routing_key": routing_key,
        "arguments": {},
    }


def _bindings(name: str) -> tuple[tuple[str, str, str], ...]:
    """Exchange, queue and routing key: those of a queue of every event and of its dead queue."""
    return (EVENTS, name, EVERY_EVENT), (DEAD, dead_queue(name), dead_queue(name))


def _exchange(name: str, vhost: str) -> dict[str, Any]:
    return {
        "name": name,
        "vhost": vhost,
        "type": "topic",
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": {},
    }


def node_definitions(
    password: str,
    passwords: Mapping[str, str],
    vhost: str,
    administrator_tags: Sequence[str] = ("administrator",),
) -> dict[str, Any]:
    """All that a node of ours begins with.

    Args:
        password: the administrator's.
        passwords: by service.
    """
    document = definitions([vhost])
    return {
        "users": [administrator(password, administrator_tags), *users(passwords)],
        **document,
        "permissions": [*administrator_permissions([vhost]), *document["permissions"]],
    }


def template() -> str:
    """The document of a node in a container, with the names of variables in place of passwords."""
    names = {user: f"${{{password_variable(user)}}}" for user in PARTICIPANTS}
    return json.dumps(node_definitions("${RABBITMQ_PASSWORD}", names, "/"), indent=1) + "\n"


if __name__ == "__main__":
    print(template(), end="")
