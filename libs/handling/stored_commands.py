"""Reading what the inbox stores of a command; None for what this release cannot read."""

from __future__ import annotations

import msgspec

from libs.contracts.principal import Principal
from libs.messaging.envelope import Reply, decode_reply

_principals = msgspec.json.Decoder(Principal)

# Bytes that are not UTF-8 raise UnicodeDecodeError, which is a ValueError.
_UNREADABLE = (msgspec.MsgspecError, ValueError)


def principal_of(stored: bytes) -> Principal | None:
    try:
        return _principals.decode(stored)
    except _UNREADABLE:
        return None


def reply_of(stored: bytes) -> Reply | None:
    try:
        return decode_reply(stored)
    except _UNREADABLE:
        return None
