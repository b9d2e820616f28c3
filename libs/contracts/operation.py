"""One row of the table: an operation, declared once, from which every surface is derived."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPMethod
from types import UnionType
from typing import Any, Generic

from typing_extensions import TypeVar

from libs.contracts.errors import BanksideError
from libs.contracts.model import Command, Model
from libs.contracts.principal import Family, Role, Scope
from libs.contracts.sensitive import SensitiveShape

GATEWAY = "gateway"
OPERATE = "operate_"
"""How the verb of an internal query begins that the gateway asks services for operators."""

C = TypeVar("C", bound=Command, default=Any)
R = TypeVar("R", default=Any)
T = TypeVar("T")


class PageInfo(Model):
    """Pagination of lists that are paged by page."""

    limit: int
    """How many rows a page has at most."""
    total: int
    """How many rows there are in all."""
    page: int
    """Which page this is; the first one is 1."""


class OffsetInfo(Model):
    """Pagination of lists that are paged by offset."""

    limit: int
    """How many rows a page has at most."""
    total: int
    """How many rows there are in all."""
    offset: int
    """How many rows come before this page: (page - 1) x limit."""


class Resource(StrEnum):
    """What a route of partners or customers is about: how the document and the code made of it group operations."""

    CUSTOMERS = "customers"
    ACCOUNTS = "accounts"
    LEDGER = "ledger"
    WIRES = "wires"
    POLICIES = "policies"
    WEBHOOKS = "webhooks"
    EVENTS = "events"


class RateClass(StrEnum):
    """What a request counts against; each has a limit of its own per key."""

    READ = "read"
    WRITE = "write"
    WIRE = "wire"
    LOG_IN = "log_in"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[C, R]):
    """An operation of one service: `C` is the type of its command, `R` that of `data` in its reply.

    mypy infers both from `command` and `reply`, except where `reply` is None or a union: such a row is annotated.

    Args:
        name: `service.verb_noun`: routing key and metric label.
        operation_id: its name in the OpenAPI document, as `sendWire`; by default made of `name` without the service.
        resource: of a row of partners or customers, the group of operations that it is in.
        command: the request; fields named in `path` come from there, the others from the query (GET) or the body.
        reply: the type of `data` in the envelope; None when data is null.
        message: the envelope's message on success.
        summary: the operation in one line, as the document lists it.
        errors: those of this operation, beside those that any of its kind may have (`libs.specs.problems`).
        pagination: of a list that is answered in pages, the type of `pagination` in the envelope.
        as_of_date: the envelope says of which day the data is.
        costly: of a query that takes many times as much as another one: its service answers few of these at a time.
        method, path, scope: None for an internal query, which only services ask.
        role: of a row of the operator family, in place of a scope.
        for_console: of a row of the operator family without a role: a console calls it to log an operator in or out.
        asked_by: of an internal query, the services that ask it.
        changes: of an internal query, that it is a write of an operator; the gateway's row says who may ask for it.
        headers: fields of the command that are read from a header, by header name.
        rate: the class of rate limits that its requests count against; by default READ of a read, else WRITE.
        extension: beyond the interface's numbered endpoints.
        pending_id: the member by which a 504 `outcome_pending`, and a 409 to another request with its key, name what
            the command is about: the path parameter of that name; without one the command id, which is the id of what
            the command makes.
    """

    name: str
    command: type[C]
    reply: type[R] | UnionType | None
    message: str = ""
    summary: str = ""
    operation_id: str = ""
    resource: Resource | None = None
    method: HTTPMethod | None = None
    path: str | None = None
    scope: Scope | None = None
    role: Role | None = None
    for_console: bool = False
    errors: tuple[type[BanksideError], ...] = ()
    pagination: type[Model] | None = None
    as_of_date: bool = False
    costly: bool = False
    asked_by: tuple[str, ...] = ()
    changes: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    rate: RateClass | None = None
    extension: bool = False
    pending_id: str | None = None

    def __post_init__(self) -> None:
        if not self.operation_id:
            object.__setattr__(self, "operation_id", operation_id_of(self.name))

    @property
    def service(self) -> str:
        return self.name.partition(".")[0]

    @property
    def senders(self) -> tuple[str, ...]:
        """The services that may send it over the broker. What has a path is sent by the gateway alone."""
        return (GATEWAY,) if self.path else self.asked_by

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method is HTTPMethod.GET or (self.method is None and not self.changes)

    @property
    def is_query(self) -> bool:
        """How it travels: queries batched, commands each durable on its own. Commands are writes.

        What operators do travels as queries, writes included: each is one transaction of the service, and the inbox of
        commands may be what is stuck. Such a write is begun once; of one that the broker delivers again the outcome is
        told as unknown.
        """
        return self.method is None or self.is_read or self.family is Family.OPERATOR

    @property
    def takes_idempotency_key(self) -> bool:
        """Whether an Idempotency-Key has its requests carried out once."""
        return not self.is_query

    @property
    def family(self) -> Family | None:
        return Family(self.path.split("/")[1]) if self.path else None

    @property
    def is_for_operators(self) -> bool:
        """Whether operators wait for its answer: a row of theirs, or one that the gateway asks services for them."""
        return self.family is Family.OPERATOR or self.name.partition(".")[2].startswith(OPERATE)

    @property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path or ""))

    @property
    def rate_class(self) -> RateClass:
        return self.rate or (RateClass.READ if self.is_read else RateClass.WRITE)

    @property
    def takes_body(self) -> bool:
        elsewhere = {*self.path_fields, *(field for field, _ in self.headers)}
        return not self.is_read and bool(set(self.command.model_fields) - elsewhere)

    @property
    def command_shape(self) -> SensitiveShape:
        return SensitiveShape.of(self.command)

    @property
    def reply_shape(self) -> SensitiveShape:
        return SensitiveShape.of(self.reply)


def operation_id_of(name: str) -> str:
    """`payments.operator_cancel_wire` is `cancelWire`: operators have a document of their own."""
    verb_noun = name.rpartition(".")[2].removeprefix("operator_")
    first, *others = verb_noun.split("_")
    return first + "".join(word.capitalize() for word in others)


def declared_in(module: Mapping[str, Any], kind: type[T]) -> tuple[T, ...]:
    """The values of this type that a module declares, in their order; `module` is its `globals()`."""
    return tuple(value for value in module.values() if isinstance(value, kind))
