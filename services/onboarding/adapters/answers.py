"""Reading a provider's answer to a write."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from libs.providers.errors import ProviderUnknown

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


def read_answer(answer: Any, model: type[AnswerT]) -> AnswerT:
    """The parts of `answer` that `model` names; others are left aside.

    Raises:
        ProviderUnknown: it is not of that shape, so what happened is not known.
    """
    try:
        return msgspec.convert(answer, model)
    except msgspec.ValidationError as error:
        raise ProviderUnknown("the answer has another shape") from error
