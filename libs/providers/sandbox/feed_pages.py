"""Pages of an event feed of the sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import (
    FETCH_SECONDS,
    LARGEST_POSITION,
    DecodedT,
    FeedCursor,
    Place,
    decode_entries,
    shown_type,
)
from libs.providers.sandbox.http import ProviderClient


async def read_entries(
    client: ProviderClient, decode: Callable[[Any], DecodedT], after: FeedCursor, limit: int
) -> list[DecodedT]:
    """The entries of the provider's event feed after a position, at most `limit`.

    Raises:
        ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        UndecodableEntry: `decode` failed on the next entry.
    """
    params = (("after", str(after.position)), ("limit", str(limit)))
    try:
        answer: Any = await client.read(
            "list_events", "/events", params, deadline=time.time() + FETCH_SECONDS
        )
        items = msgspec.convert(answer["events"], list[Any])
    except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
        raise ProviderError from error
    return decode_entries(items, after.position, lambda item, _: decode(item), locate)


def locate(item: Any, after: int) -> Place:
    """An entry is identified by its position. One that cannot be read is the next: nothing else is skipped with it."""
    fields = item if isinstance(item, dict) else {}
    position = fields.get("position")
    if type(position) is not int or not after < position <= LARGEST_POSITION:
        position = after + 1
    return Place(position, shown_type(fields.get("type")))
