"""Reading the entries of a provider's event feed: the parts that are asked for, others left aside."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed import decode_entries
from libs.providers.http import ProviderClient

FETCH_SECONDS = 10.0

EntryT = TypeVar("EntryT", bound=msgspec.Struct)


async def read_entries(
    client: ProviderClient, entry: type[EntryT], after: int, limit: int
) -> list[EntryT]:
    """The entries of the provider's event feed after a position.

    Raises:
        ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        UndecodableEntry: the next entry is not of that shape.
    """
    params = (("after", str(after)), ("limit", str(limit)))
    try:
        answer: Any = await client.read(
            "list_events", "/events", params, deadline=time.time() + FETCH_SECONDS
        )
        items = msgspec.convert(answer["events"], list[Any])
    except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
        raise ProviderError from error
    return decode_entries(items, after, lambda item: msgspec.convert(item, entry))
