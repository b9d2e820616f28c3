"""Reading what a provider answered: the parts that are asked for, others left aside."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal, ProviderUnknown
from libs.providers.http import ProviderClient

FETCH_SECONDS = 10.0

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)
EntryT = TypeVar("EntryT", bound=msgspec.Struct)


def read_answer(answer: Any, model: type[AnswerT]) -> AnswerT:
    """The answer to a write.

    Raises:
        ProviderUnknown: it is not of that shape, so what happened is not known.
    """
    try:
        return msgspec.convert(answer, model)
    except msgspec.ValidationError as error:
        raise ProviderUnknown("the answer has another shape") from error


async def read_entries(
    client: ProviderClient, entry: type[EntryT], after: int, limit: int
) -> list[EntryT]:
    """The entries of the provider's event feed after a position.

    Raises:
        ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
    """
    params = (("after", str(after)), ("limit", str(limit)))
    try:
        answer: Any = await client.read(
            "list_events", "/events", params, deadline=time.time() + FETCH_SECONDS
        )
        return [msgspec.convert(item, entry) for item in answer["events"]]
    except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
        raise ProviderError from error
