"""A user of its own at the broker for a program that consumes events, with one queue, as RabbitMQ definitions.

    .venv/bin/python -m deploy.rabbitmq.event_consumer books --types 'wire.*' --password-file FILE >books.json
    rabbitmqctl import_definitions <books.json

makes the user `books`, and the durable queue `books.events` bound to the types. The user may read this queue and
nothing else: it declares, binds and publishes nothing. Importing the document again changes nothing; one with further
types adds their bindings.

A queue has a bound. Beyond it the oldest event is dropped: a consumer that stands still must neither fill the broker's
disk nor hold up the publication of events for others.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.rabbitmq.definitions import ADMINISTRATOR, binding, queue
from libs.contracts.events import EVENT_TYPES
from libs.messaging.permissions import NOTHING
from libs.messaging.senders import EMITTERS, PARTICIPANTS
from libs.messaging.topology import EVENTS, NO_DELIVERY_LIMIT, events_queue

GREATEST_EVENTS = 200_000
GREATEST_BYTES = 256 * 1024 * 1024
MOST_CONNECTIONS = 10
MOST_CHANNELS = 30
"""Of all its connections: a consumer of `libs.client` has two on each."""
SHORTEST_PASSWORD = 16

_NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")
_RESERVED = {*PARTICIPANTS, ADMINISTRATOR, "guest"}


class BadArgument(ValueError):
    """One sentence for the operator."""


def event_consumer_definitions(
    name: str, password: str, *, types: Sequence[str], vhost: str
) -> dict[str, Any]:
    """The document for one consumer. It has the password's hash, not the password.

    Args:
        types: types of events, such as `wire.completed`, kinds such as `wire.*`, or `#` for all.

    Raises:
        BadArgument
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise BadArgument(
            "A consumer's name begins with a letter, has 2 to 41 lower-case letters, digits and underscores,"
            " and is not that of a service."
        )
    known = {"#", *(f"{kind}.*" for kind in EMITTERS)}
    known |= {event.name for event in EVENT_TYPES.values() if event.kind in EMITTERS}
    if unknown := [each for each in types if each not in known]:
        raise BadArgument(
            f"{unknown[0]} is no type of event that travels over the broker: give a type such as wire.completed,"
            " a kind such as 'wire.*', or '#' for all."
        )
    name_of_queue = events_queue(name)
    return {
        "users": [
            {
                "name": name,
                "password_hash": _hash(password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "",
                "limits": {"max-connections": MOST_CONNECTIONS, "max-channels": MOST_CHANNELS},
            }
        ],
        "permissions": [
            {
                "user": name,
                "vhost": vhost,
                "configure": NOTHING,
                "write": NOTHING,
                "read": f"^{re.escape(name_of_queue)}$",
            }
        ],
        "queues": [
            queue(
                name_of_queue,
                vhost,
                {
                    "x-queue-type": "quorum",
                    "x-delivery-limit": NO_DELIVERY_LIMIT,
                    "x-max-length": GREATEST_EVENTS,
                    "x-max-length-bytes": GREATEST_BYTES,
                    "x-overflow": "drop-head",
                },
            )
        ],
        "bindings": [binding(EVENTS, name_of_queue, each, vhost) for each in dict.fromkeys(types)],
    }


def _hash(password: str) -> str:
    """As RabbitMQ stores it: a salt of 4 bytes, and the SHA-256 of salt and password."""
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _password(path: Path) -> str:
    """That of the file, which is made with a new one when there is none.

    Raises:
        BadArgument
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        pass
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}.") from error
    else:
        path.write_text(secrets.token_urlsafe(32) + "\n")
    try:
        password = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgument(f"{path} cannot be read as text.") from error
    if len(password) < SHORTEST_PASSWORD:
        raise BadArgument(
            f"The password in {path} has fewer than {SHORTEST_PASSWORD} characters: write a longer one, or delete"
            " the file to have one made."
        )
    return password


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.rabbitmq.event_consumer",
        description="Print RabbitMQ definitions for a consumer of events: a user that may read one queue.",
        epilog="Import them: rabbitmqctl import_definitions <FILE",
    )
    parser.add_argument("name", help="of the user; its queue is NAME.events")
    parser.add_argument(
        "--types", nargs="+", required=True, help="such as wire.completed, 'wire.*' or '#'"
    )
    parser.add_argument(
        "--password-file",
        type=Path,
        required=True,
        help="made with a new password if there is none",
    )
    parser.add_argument("--vhost", default="/", help="as at the end of BANKSIDE_AMQP_URL (/)")
    given = parser.parse_args(arguments)
    try:
        # First without a password: a wrong argument leaves no file behind.
        event_consumer_definitions(given.name, "", types=given.types, vhost=given.vhost)
        document = event_consumer_definitions(
            given.name, _password(given.password_file), types=given.types, vhost=given.vhost
        )
    except BadArgument as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
