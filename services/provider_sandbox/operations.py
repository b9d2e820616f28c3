"""What an endpoint of the bank is: a row that names it, and a handler that does it or refuses.

A handler returns what becomes the body of a 200; it says no by raising `Refusal`. It never knows of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from services.provider_sandbox.database import Connection

Api = Literal["identity", "core", "financial"]


class Refusal(Exception):
    """The bank's definite no: nothing was changed. `message` never quotes what was sent.

    One that is not `kept` is no answer to its key: that stays as if it had never come.
    """

    def __init__(self, status: int, code: str, message: str, *, kept: bool = True) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message
        self.kept = kept

    @property
    def body(self) -> dict[str, object]:
        return {"error": {"code": self.code, "message": self.message}}


def not_found(what: str) -> Refusal:
    return Refusal(404, "not_found", f"There is no such {what}.")


class Body(BaseModel):
    """A request body: exact types, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Query(BaseModel):
    """Query parameters: text that is read as the field's type, no unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(Body):
    """The body of an operation that needs none: `{}` or no bytes at all."""


class NoQuery(Query):
    """An operation without parameters."""


class OfCaller(NoQuery):
    """Without parameters, too, but it shows a caller only what is its own."""

    operations: frozenset[str]
    """That the caller may carry out."""


BodyT = TypeVar("BodyT", bound=Body)
QueryT = TypeVar("QueryT", bound=Query)


@dataclass(frozen=True)
class Read(Generic[QueryT]):
    """A GET. The handler gets the path's `{id}` ("" when it has none) and the parameters.

    A header in `headers` becomes a parameter of its name, where it is sent.
    """

    name: str
    path: str
    handle: Callable[[Connection, str, QueryT], Awaitable[object]]
    query: type[QueryT]
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchedRead:
    """A GET by `{id}` alone, of which all that wait at the same moment are answered by one statement.

    The handler gets the ids, each once, and gives what becomes the body of a 200 for each that it finds.
    """

    name: str
    path: str
    handle: Callable[[Connection, Sequence[str]], Awaitable[Mapping[str, object]]]
    what: str
    """Of what there is none when the id is not found."""


@dataclass(frozen=True)
class Write(Generic[BodyT]):
    """A POST or PATCH. The handler runs inside one transaction, with the path's `{id}` and the body."""

    name: str
    method: Literal["POST", "PATCH"]
    path: str
    handle: Callable[[Connection, str, BodyT], Awaitable[object]]
    body: type[BodyT]


@dataclass(frozen=True)
class BatchedWrite(Generic[BodyT]):
    """A POST of which all that wait at the same moment are carried out in one transaction.

    The handler gets the keys and the bodies in the order in which they came, each key once. For each it gives what
    becomes the body of a 200, or a Refusal that has changed nothing.
    """

    name: str
    path: str
    handle: Callable[[Connection, Sequence[tuple[str, BodyT]]], Awaitable[Sequence[object]]]
    body: type[BodyT]
    key: re.Pattern[str]
    """What its Idempotency-Key looks like."""


Operation: TypeAlias = Read[Any] | BatchedRead | Write[Any] | BatchedWrite[Any]
Control: TypeAlias = Read[Any] | Write[Any]
"""An operation for tests: those have no keys."""
Operations: TypeAlias = Sequence[Operation]
Controls: TypeAlias = Sequence[Control]
