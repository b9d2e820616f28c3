"""Answers of Increase, read as structs of ours: those of their fields that are used.

The SDK's models refuse an answer for any value that they do not know, also in a field that is not read.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import httpx
import msgspec

AnswerT = TypeVar("AnswerT")


class Answer(Protocol):
    """A raw response of the SDK's."""

    @property
    def http_response(self) -> httpx.Response: ...


def read_answer(answer: Answer, kind: type[AnswerT]) -> AnswerT:
    """Raises ValueError: the answer has another shape."""
    return msgspec.json.decode(answer.http_response.content, type=kind)
