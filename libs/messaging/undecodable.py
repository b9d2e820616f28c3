"""Messages with properties that pamqp cannot decode, such as one service's user may send them.

RabbitMQ passes a message's properties and routing key on without looking at most of them. Where pamqp cannot decode
one, aiormq ends the whole connection; the message goes back to its queue, and ends the next connection. So one message
would stop all that a service consumes, and no consumer would ever see it to refuse it.

pamqp has no documented way to be tolerant. Two things are bent, for pamqp 4.0, which `pyproject.toml` therefore bounds;
`tests/unit/messaging/test_undecodable.py` fails when one no longer holds:

| what | how it arrives |
|---|---|
| a text that is not UTF-8: a routing key, or a property such as the message id | with U+FFFD in its place |
| a time that is none, in the property `timestamp` or in a header | as None |
| any other property or header that cannot be decoded | the message has no properties, and so no sender |

The consumer then judges the message by its rules: what is not as the sender's release makes it is refused.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from pamqp import decode
from pamqp.commands import Basic
from pamqp.header import ContentHeader

SHORT_STRING, TIMESTAMP = "shortstr", "timestamp"
"""pamqp's names of the types of arguments and properties."""
TIMESTAMP_IN_TABLE = b"T"
TIMESTAMP_BYTES = 8

_unmarshal = ContentHeader.unmarshal


def tolerate_undecodable() -> None:
    """Have pamqp decode what it would raise an error for."""
    decode.METHODS[SHORT_STRING] = _short_string
    decode.METHODS[TIMESTAMP] = decode.TABLE_MAPPING[TIMESTAMP_IN_TABLE] = _timestamp
    ContentHeader.unmarshal = _tolerant_unmarshal  # type: ignore[method-assign,assignment]


def _short_string(value: bytes) -> tuple[int, str]:
    end = value[0] + 1
    return end, value[1:end].decode("utf-8", errors="replace")


def _timestamp(value: bytes) -> tuple[int, datetime | None]:
    try:
        return decode.timestamp(value)
    except (ValueError, OverflowError, OSError):
        return TIMESTAMP_BYTES, None


def _tolerant_unmarshal(header: ContentHeader, data: bytes) -> None:
    try:
        _unmarshal(header, data)
    except Exception as error:  # of many kinds: of a decimal, of a table in a thousand tables
        structlog.get_logger("broker").warning(
            "properties_undecodable", error=type(error).__name__, bytes=len(data)
        )
        header.properties = Basic.Properties()
