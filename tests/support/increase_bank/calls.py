"""An operation of the API: what it takes, and what does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.increase_bank.shapes import Json
from tests.support.increase_bank.store import Store

Method = Literal["GET", "POST", "PATCH"]


@dataclass
class Conduct:
    """How the bank conducts itself; a test may change it at any time."""

    wire_seconds: float = 2.0
    """From the acceptance of a wire to its completion."""
    validation_seconds: float = 0.0
    """For which a new entity is `pending`."""
    page_limit: int = 100
    """Pages have no more rows, also when `limit` asks for more."""
    public_url: str = "http://127.0.0.1:8091"
    """Where links to files lead."""


@dataclass(frozen=True)
class Call:
    """A request that was found valid."""

    store: Store
    conduct: Conduct
    id: str
    """From the path; empty for operations without."""
    body: Json = field(default_factory=dict)
    query: Json = field(default_factory=dict)
    key: str | None = None
    """The idempotency key."""
    digest: str = ""
    """Of path and body: requests with one key must not differ in it."""


@dataclass(frozen=True)
class Done:
    """What a write has done: the object it made or changed."""

    kind: str
    id: str


Read = Callable[[Call], str]
Write = Callable[[Call], Done]


@dataclass(frozen=True)
class Operation:
    """A row of the API. Its name is `METHOD /path`, with `{id}` for the one variable part."""

    method: Method
    path: str
    takes: Any
    """The SDK's parameter type; None: no parameters."""
    run: Read | Write
    reader: bool = False
    """Whether keys that only read may do it although it is a POST."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"
